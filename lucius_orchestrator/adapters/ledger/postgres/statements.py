"""The SQL of the ledger."""

from collections.abc import Iterable
from functools import lru_cache

from lucius_orchestrator.adapters.ledger.codec import JOB_COLUMNS, STEP_COLUMNS
from lucius_orchestrator.domain.decision import AuditEvent
from lucius_orchestrator.ports.ledger import DeadLetterRow
from lucius_outbox.postgres.statements import CHANNEL

Names = tuple[str, ...]
_JOB_HEAD = (
    "job_id",
    "version",
    "tenant_id",
    "request_type",
    "mode",
    "engine",
    "idempotency_entry",
    "due_at",
    "due_kind",
    "created_at",
)
_JOB = ", ".join(f"j.{name}" for name in JOB_COLUMNS)
_STEP = ", ".join(f"s.{name}" for name in STEP_COLUMNS)
_EVENT = ", ".join(AuditEvent._fields)
_LETTER = ", ".join(DeadLetterRow._fields)
_NOW = "coalesce(%(now)s::timestamptz, statement_timestamp())"


def _insert(table: str, columns: Names) -> str:
    marks = ", ".join(["%s"] * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"


def _insert_all(table: str, columns: Names) -> str:
    """Any number of rows, as one JSON text: an array per column costs the client far more."""
    names = ", ".join(columns)
    rows = f"json_populate_recordset(NULL::{table}, %s::json)"
    return f"INSERT INTO {table} ({names}) SELECT {names} FROM {rows}"


# The plan is long: it travels once, not with every step.
LOAD = f"""
SELECT j.version, j.due_at, j.due_kind, CASE s.step_index WHEN 0 THEN p.document END, {_JOB},
       {_STEP}
FROM lucius_ledger_jobs j
JOIN lucius_ledger_plans p USING (job_id)
JOIN lucius_ledger_steps s USING (job_id)
WHERE j.job_id = %s ORDER BY s.step_index
"""
VERSIONS = "SELECT job_id, version FROM lucius_ledger_jobs WHERE job_id = ANY(%s)"

_INSERT_STEPS = _insert_all("lucius_ledger_steps", ("job_id", "step_index", *STEP_COLUMNS))
_INSERT_EVENTS = _insert_all("lucius_ledger_events", ("job_id", *AuditEvent._fields))
_INSERT_LETTERS = _insert_all("lucius_ledger_dead_letters", DeadLetterRow._fields)
_AGAIN = "ON CONFLICT (id) DO UPDATE SET last_at = excluded.last_at"

INSERT = f"""
WITH job AS ({_insert("lucius_ledger_jobs", (*_JOB_HEAD, *JOB_COLUMNS))}),
plan AS ({_insert("lucius_ledger_plans", ("job_id", "document"))}),
steps AS ({_INSERT_STEPS})
{_INSERT_EVENTS}
"""

_MOVED = "EXISTS (SELECT FROM moved)"
# Never below zero: a counter that is wrong must not keep a job from its end.
GIVE_SLOT = """
UPDATE lucius_ledger_in_flight SET jobs = greatest(jobs - 1, 0) WHERE scope = %s AND name = %s
"""
# Each looks at the one before, so that the rows are locked in this order.
_GIVE_SLOTS = f"""
slot_1 AS ({GIVE_SLOT} AND {_MOVED} RETURNING jobs),
slot_2 AS ({GIVE_SLOT} AND {_MOVED} AND (SELECT count(*) FROM slot_1) >= 0 RETURNING jobs),
slot_3 AS ({GIVE_SLOT} AND {_MOVED} AND (SELECT count(*) FROM slot_2) >= 0)
"""


@lru_cache(maxsize=1024)
def update(
    job: Names,
    steps: tuple[Names, ...] = (),
    *,
    events: bool = False,
    letters: bool = False,
    slots: bool = False,
) -> str:
    """All rows of a commit in one statement: the job's if it is at its version, which locks it, and
    the others if that was done."""
    parts = [f"moved AS ({_update_job(job)})"]
    parts += [f"step_{number} AS ({_update_step(names)})" for number, names in enumerate(steps)]
    if events:
        parts.append(f"events AS ({_INSERT_EVENTS} WHERE {_MOVED})")
    if letters:
        parts.append(f"letters AS ({_INSERT_LETTERS} WHERE {_MOVED} {_AGAIN})")
    if slots:
        parts.append(_GIVE_SLOTS)
    return f"WITH {', '.join(parts)} SELECT version FROM moved"


def _update_job(names: Names) -> str:
    return f"""
UPDATE lucius_ledger_jobs SET {_assigned(("version = version + 1", *names))}
WHERE job_id = %s AND version = %s RETURNING version
"""


def _update_step(names: Names) -> str:
    return f"""
UPDATE lucius_ledger_steps SET {_assigned(names)}
WHERE job_id = %s AND step_index = %s AND {_MOVED}
"""


def _assigned(names: Iterable[str]) -> str:
    return ", ".join(name if "=" in name else f"{name} = %s" for name in names)


IN_FLIGHT = """
SELECT coalesce(json_object_agg(scope || ' ' || name, jobs), '{}') FROM lucius_ledger_in_flight
WHERE scope IN ('GLOBAL', 'MODE') OR (scope = 'TENANT' AND name = %(tenant_id)s)
"""
# Waits for another transaction that is about to write the entry.
RESERVE = f"""
WITH reserved AS (
    INSERT INTO lucius_ledger_idempotency (tenant_id, entry, content_hash, job_id)
    VALUES (%(tenant_id)s, %(entry)s, %(content_hash)s, %(job_id)s)
    ON CONFLICT DO NOTHING RETURNING job_id
)
SELECT EXISTS (SELECT FROM reserved), ({IN_FLIGHT})
"""
FIND = """
SELECT job_id, content_hash FROM lucius_ledger_idempotency WHERE tenant_id = %s AND entry = %s
"""

TAKE_SLOT = """
INSERT INTO lucius_ledger_in_flight AS f (scope, name, jobs) VALUES (%s, %s, 1)
ON CONFLICT (scope, name) DO UPDATE
SET jobs = CASE WHEN f.jobs < coalesce(%s::bigint, f.jobs + 1) THEN f.jobs + 1 ELSE -1 END
"""
# Jobs and counters change in one commit, so one statement, which is one snapshot, sees only what is
# really wrong.
MISCOUNTED = """
WITH open AS MATERIALIZED (
    SELECT tenant_id, mode FROM lucius_ledger_jobs WHERE completed_at IS NULL
), counted AS (
    SELECT 'TENANT' AS scope, tenant_id AS name, count(*) AS jobs FROM open GROUP BY tenant_id
    UNION ALL SELECT 'MODE', mode COLLATE "C", count(*) FROM open GROUP BY mode
    UNION ALL SELECT 'GLOBAL', '', count(*) FROM open
)
SELECT scope, name, coalesce(f.jobs, 0), coalesce(c.jobs, 0)
FROM lucius_ledger_in_flight f FULL JOIN counted c USING (scope, name)
WHERE coalesce(f.jobs, 0) <> coalesce(c.jobs, 0)
LIMIT %s
"""
# Waits for every transaction that has taken or given slots, and lets nobody begin: a job that is
# being created or ended is then counted on neither side.
LOCK_SLOTS = "LOCK TABLE lucius_ledger_in_flight IN EXCLUSIVE MODE"
RECOUNT = """
INSERT INTO lucius_ledger_in_flight (scope, name, jobs) VALUES (%s, %s, %s)
ON CONFLICT (scope, name) DO UPDATE SET jobs = excluded.jobs
"""
FORGET_TENANTS = """
DELETE FROM lucius_ledger_in_flight WHERE scope = 'TENANT' AND jobs = 0 AND name = ANY(ARRAY(
    SELECT name FROM lucius_ledger_in_flight WHERE scope = 'TENANT' AND jobs = 0
    LIMIT %s FOR UPDATE SKIP LOCKED
))
"""

EVENTS = f"""
SELECT {_EVENT} FROM lucius_ledger_events WHERE job_id = %s AND seq > %s ORDER BY seq LIMIT %s
"""

# Each kind by itself: then the index gives its oldest without a sort.
DUE = """
SELECT due.job_id, due.due_at, due.due_kind
FROM unnest(%(kinds)s::text[]) AS kinds (kind) CROSS JOIN LATERAL (
    SELECT job_id, due_at, due_kind FROM lucius_ledger_jobs
    WHERE due_kind = kind AND due_at IS NOT NULL AND due_at <= %(before)s
    ORDER BY due_at LIMIT %(limit)s
) AS due
ORDER BY due.due_at LIMIT %(limit)s
"""
UNSETTLED = """
SELECT job_id FROM lucius_ledger_jobs WHERE unsettled IS NOT NULL AND unsettled = ANY(%s) LIMIT %s
"""
ENDED = """
SELECT job_id FROM lucius_ledger_jobs WHERE completed_at IS NOT NULL AND completed_at < %s
ORDER BY completed_at LIMIT %s
"""

REMOVE = """
WITH gone AS (
    DELETE FROM lucius_ledger_jobs WHERE job_id = %(job_id)s AND version = %(version)s
    RETURNING tenant_id, idempotency_entry
), entry AS (
    DELETE FROM lucius_ledger_idempotency AS i USING gone
    WHERE i.tenant_id = gone.tenant_id AND i.entry = gone.idempotency_entry
      AND i.job_id = %(job_id)s
), plan AS (
    DELETE FROM lucius_ledger_plans WHERE job_id = %(job_id)s AND EXISTS (SELECT FROM gone)
), steps AS (
    DELETE FROM lucius_ledger_steps WHERE job_id = %(job_id)s AND EXISTS (SELECT FROM gone)
), events AS (
    DELETE FROM lucius_ledger_events WHERE job_id = %(job_id)s AND EXISTS (SELECT FROM gone)
), named AS (
    DELETE FROM lucius_outbox_messages
    WHERE namespace = ANY(%(namespaces)s) AND topic = %(topic)s AND dedupe_key = ANY(%(names)s)
      AND EXISTS (SELECT FROM gone)
)
SELECT FROM gone
"""
EXISTS = "SELECT FROM lucius_ledger_jobs WHERE job_id = %s"

# A row that was there before has an xmax: that of this very update.
BURY = f"""
{_insert("lucius_ledger_dead_letters", DeadLetterRow._fields)} {_AGAIN}
RETURNING xmax = 0
"""
REDRIVEN = """
UPDATE lucius_ledger_dead_letters SET redriven_by = %s WHERE job_id = %s AND redriven_by IS NULL
"""

# The namespace, topic and dedupe key of a directive are indexed; see lucius_outbox.
DIRECTIVE = f"""
SELECT status, status IN ('pending', 'processing') AND next_attempt_at <= {_NOW}
               AND coalesce(locked_until < {_NOW}, true)
FROM lucius_outbox_messages
WHERE namespace = ANY(%(namespaces)s) AND topic = %(topic)s AND dedupe_key = %(outbox_id)s
"""
BACKLOG = """
SELECT topic, count(*) FROM lucius_outbox_messages
WHERE namespace = ANY(%(namespaces)s)
  AND ((status = 'pending' AND NOT waiting) OR status = 'processing')
GROUP BY topic
"""
BACKLOGS = """
SELECT service, topic, count(*), min((payload ->> 'created_at')::timestamptz)
FROM lucius_outbox_messages CROSS JOIN LATERAL coalesce(
    nullif(split_part(queue, '/', 1), ''), payload ->> 'service'
) AS service
WHERE namespace = ANY(%(namespaces)s)
  AND ((status = 'pending' AND NOT waiting) OR status = 'processing')
GROUP BY service, topic
"""

PUBLISH_REPORT = """
INSERT INTO lucius_ledger_reports (process_id, at, document) VALUES (%s, %s, %s)
ON CONFLICT (process_id) DO UPDATE SET at = excluded.at, document = excluded.document
"""
REPORTS = "SELECT process_id, at, document FROM lucius_ledger_reports WHERE at >= %s"
WITHDRAW_REPORT = "DELETE FROM lucius_ledger_reports WHERE process_id = %s"
PRUNE_REPORTS = """
DELETE FROM lucius_ledger_reports WHERE process_id IN (
    SELECT process_id FROM lucius_ledger_reports WHERE at < %s LIMIT %s
)
"""

# What the outbox keeps for a replay, which directives never have; the dead letter stays.
PRUNE_DEAD = f"""
DELETE FROM lucius_outbox_messages WHERE id IN (
    SELECT id FROM lucius_outbox_messages
    WHERE namespace = %(namespace)s AND status = 'dead'
      AND updated_at < {_NOW} - %(older_than)s::interval
    ORDER BY seq LIMIT %(limit)s
)
"""
WAKE = f"SELECT pg_notify('{CHANNEL}', %s)"
LISTEN = f"LISTEN {CHANNEL}"

# A process that was stopped in mid-transaction keeps its locks no longer than a minute.
CONFIGURE = """
SELECT set_config('TimeZone', 'UTC', false),
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('idle_in_transaction_session_timeout', '60s', false),
       set_config('lock_timeout', %s, false)
"""


def jobs_page(tenant: bool, cursor: bool) -> str:
    """One page. No index has to move with every state, so the state and the type are looked at in
    the newest jobs after the cursor; the last of these is in every row, also when none matches."""
    conditions = [
        *(["tenant_id = %(tenant_id)s"] if tenant else []),
        *(["job_id < %(cursor)s"] if cursor else []),
    ]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"""
WITH scanned AS MATERIALIZED (
    SELECT job_id, created_at, state, request_type FROM lucius_ledger_jobs
    {where} ORDER BY job_id DESC LIMIT %(scan)s
), last AS (
    SELECT job_id, created_at, (SELECT count(*) FROM scanned) AS scanned
    FROM scanned ORDER BY job_id LIMIT 1
), matching AS MATERIALIZED (
    SELECT job_id FROM scanned
    WHERE (%(state)s::text IS NULL OR state = %(state)s)
      AND (%(request_type)s::text IS NULL OR request_type = %(request_type)s)
      AND (%(since)s::timestamptz IS NULL OR created_at >= %(since)s)
    ORDER BY job_id DESC LIMIT %(limit)s
)
SELECT last.job_id, last.created_at, last.scanned, page.*
FROM last LEFT JOIN (
    SELECT p.document, {_JOB}, j.job_id FROM matching
    JOIN lucius_ledger_jobs j USING (job_id) JOIN lucius_ledger_plans p USING (job_id)
) AS page ON true
ORDER BY page.job_id DESC
"""


def letters_page(tenant: bool, cursor: bool) -> str:
    conditions = [
        "(%(kind)s::text IS NULL OR kind = %(kind)s)",
        "(%(code)s::text IS NULL OR code = %(code)s)",
        *(["tenant_id = %(tenant_id)s"] if tenant else []),
        *(["(first_at, id) < (%(first_at)s, %(id)s)"] if cursor else []),
    ]
    return f"""
SELECT {_LETTER} FROM lucius_ledger_dead_letters WHERE {" AND ".join(conditions)}
ORDER BY first_at DESC, id DESC LIMIT %(limit)s
"""
