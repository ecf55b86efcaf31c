"""The SQL of the ledger."""

from collections.abc import Iterable
from functools import lru_cache

from lucius_orchestrator.adapters.ledger.codec import JOB_COLUMNS, STEP_COLUMNS

_JOB = ", ".join(f"j.{name}" for name in JOB_COLUMNS)
_STEP = ", ".join(f"s.{name}" for name in STEP_COLUMNS)


def _insert(table: str, columns: tuple[str, ...], on_conflict: str = "") -> str:
    marks = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks}) {on_conflict}"


LOAD = f"""
SELECT j.job_no, j.version, j.due_at, j.due_kind, p.document, {_JOB}, {_STEP}
FROM lucius_ledger_jobs j
JOIN lucius_ledger_plans p USING (job_no)
JOIN lucius_ledger_steps s ON s.step_no BETWEEN 32 * j.job_no AND 32 * j.job_no + 31
WHERE j.job_id = ? ORDER BY s.step_no
"""

VERSIONS = """
SELECT job_id, job_no, version FROM lucius_ledger_jobs
WHERE job_id IN (SELECT value FROM json_each(?))
"""

INSERT_JOB = _insert(
    "lucius_ledger_jobs",
    (
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
        *JOB_COLUMNS,
    ),
)
INSERT_PLAN = _insert("lucius_ledger_plans", ("job_no", "document"))
INSERT_STEP = _insert("lucius_ledger_steps", ("step_no", *STEP_COLUMNS))
INSERT_EVENTS = _insert("lucius_ledger_events", ("job_no", "last_seq", "document"))


@lru_cache(maxsize=512)
def update_job(names: tuple[str, ...]) -> str:
    return f"""
UPDATE lucius_ledger_jobs SET {_assigned(("version = version + 1", *names))}
WHERE job_no = ? AND version = ? AND job_id = ?
"""


@lru_cache(maxsize=512)
def update_step(names: tuple[str, ...]) -> str:
    return f"UPDATE lucius_ledger_steps SET {_assigned(names)} WHERE step_no = ?"


def _assigned(names: Iterable[str]) -> str:
    return ", ".join(name if "=" in name else f"{name} = ?" for name in names)


RESERVE = """
INSERT INTO lucius_ledger_idempotency (tenant_id, entry, content_hash, job_id) VALUES (?, ?, ?, ?)
"""
FIND = """
SELECT job_id, content_hash FROM lucius_ledger_idempotency WHERE tenant_id = ? AND entry = ?
"""
UNRESERVE = """
DELETE FROM lucius_ledger_idempotency WHERE tenant_id = ? AND job_id = ? AND entry =
    (SELECT idempotency_entry FROM lucius_ledger_jobs WHERE job_no = ?)
"""

TAKE_SLOTS = """
INSERT INTO lucius_ledger_in_flight (scope, name, jobs)
VALUES ('TENANT', ?, 1), ('MODE', ?, 1), ('GLOBAL', '', 1)
ON CONFLICT DO UPDATE SET jobs = jobs + 1
"""
TAKEN = "SELECT jobs FROM lucius_ledger_in_flight WHERE scope = ? AND name = ?"
GIVE_SLOT = """
UPDATE lucius_ledger_in_flight SET jobs = max(jobs - 1, 0) WHERE scope = ? AND name = ?
"""
IN_FLIGHT = """
SELECT scope, name, jobs FROM lucius_ledger_in_flight
WHERE scope IN ('GLOBAL', 'MODE') OR (scope = 'TENANT' AND name = ?)
"""
COUNTED = """
WITH open AS MATERIALIZED (
    SELECT tenant_id, mode FROM lucius_ledger_jobs INDEXED BY lucius_ledger_open
    WHERE completed_at IS NULL
), counted AS (
    SELECT 'TENANT' AS scope, tenant_id AS name, count(*) AS jobs FROM open GROUP BY tenant_id
    UNION ALL SELECT 'MODE', mode, count(*) FROM open GROUP BY mode
    UNION ALL SELECT 'GLOBAL', '', count(*) FROM open
)
"""
MISCOUNTED = f"""
{COUNTED}
SELECT scope, name, f.jobs, coalesce(c.jobs, 0)
FROM lucius_ledger_in_flight f LEFT JOIN counted c USING (scope, name)
WHERE f.jobs <> coalesce(c.jobs, 0) OR (f.jobs = 0 AND scope = 'TENANT')
UNION ALL
SELECT scope, name, 0, c.jobs FROM counted c LEFT JOIN lucius_ledger_in_flight f USING (scope, name)
WHERE f.jobs IS NULL AND c.jobs > 0
LIMIT ?
"""
RECOUNT = """
INSERT INTO lucius_ledger_in_flight (scope, name, jobs) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET jobs = excluded.jobs
"""
FORGET_TENANT = "DELETE FROM lucius_ledger_in_flight WHERE scope = 'TENANT' AND name = ?"

EVENTS = """
SELECT document FROM lucius_ledger_events
WHERE job_no = (SELECT job_no FROM lucius_ledger_jobs WHERE job_id = ?) AND last_seq > ?
ORDER BY last_seq LIMIT ?
"""

DUE = """
SELECT job_id, due_at, due_kind FROM lucius_ledger_jobs INDEXED BY lucius_ledger_due
WHERE due_kind = ? AND due_at IS NOT NULL AND due_at <= ?
ORDER BY due_at LIMIT ?
"""
ENDING = """
SELECT job_id FROM lucius_ledger_jobs WHERE state = ? AND state IN ('CANCELLING', 'PAUSING')
LIMIT ?
"""
ENDED = """
SELECT job_id FROM lucius_ledger_jobs INDEXED BY lucius_ledger_ended
WHERE completed_at IS NOT NULL AND completed_at < ?
ORDER BY completed_at LIMIT ?
"""

DELETE_JOB = "DELETE FROM lucius_ledger_jobs WHERE job_no = ? AND version = ? AND job_id = ?"
DELETE_PLAN = "DELETE FROM lucius_ledger_plans WHERE job_no = ?"
DELETE_STEPS = "DELETE FROM lucius_ledger_steps WHERE step_no BETWEEN 32 * ? AND 32 * ? + 31"
DELETE_EVENTS = "DELETE FROM lucius_ledger_events WHERE job_no = ?"
EXISTS = "SELECT 1 FROM lucius_ledger_jobs WHERE job_id = ?"

BURY = """
INSERT INTO lucius_ledger_dead_letters
    (id, kind, tenant_id, job_id, step_id, attempt_no, code, message, first_at, last_at,
     redriven_by)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO NOTHING
"""
BURY_AGAIN = "UPDATE lucius_ledger_dead_letters SET last_at = ? WHERE id = ?"
REDRIVEN = """
UPDATE lucius_ledger_dead_letters SET redriven_by = ? WHERE job_id = ? AND redriven_by IS NULL
"""

# What the outbox keeps for a replay, which directives never have; the dead letter stays.
PRUNE_DEAD = """
DELETE FROM lucius_outbox_messages WHERE seq IN (
    SELECT seq FROM lucius_outbox_messages INDEXED BY lucius_outbox_dead
    WHERE namespace = ? AND status = 'dead' AND updated_at < ? ORDER BY seq LIMIT ?
)
"""

# The namespace, topic and dedupe key of a directive are indexed; see lucius_outbox.
DIRECTIVE = """
SELECT status, next_attempt_at, locked_until FROM lucius_outbox_messages
WHERE namespace IN (?, ?) AND topic = ? AND dedupe_key = ?
"""
FORGET_NAMED = """
DELETE FROM lucius_outbox_messages
WHERE namespace = ? AND topic = ? AND dedupe_key IN (SELECT value FROM json_each(?))
"""

BACKLOG = """
SELECT topic, count(*) FROM (
    SELECT topic FROM lucius_outbox_messages INDEXED BY lucius_outbox_due
    WHERE namespace IN (?, ?) AND status = 'pending' AND waiting = 0
    UNION ALL
    SELECT topic FROM lucius_outbox_messages INDEXED BY lucius_outbox_leases
    WHERE namespace IN (?, ?) AND status = 'processing'
) GROUP BY topic
"""

# The oldest is looked up afterwards, so that no payloads are sorted.
BACKLOGS = """
WITH waiting AS (
    SELECT seq, topic, queue, payload FROM lucius_outbox_messages INDEXED BY lucius_outbox_due
    WHERE namespace = ? AND status = 'pending' AND waiting = 0
    UNION ALL
    SELECT seq, topic, queue, payload FROM lucius_outbox_messages INDEXED BY lucius_outbox_leases
    WHERE namespace = ? AND status = 'processing'
), named AS (
    SELECT seq, topic, coalesce(
        nullif(substr(queue, 1, instr(queue, '/') - 1), ''), json_extract(payload, '$.service')
    ) AS service
    FROM waiting
), counted AS (
    SELECT service, topic, count(*) AS count, min(seq) AS first FROM named GROUP BY service, topic
)
SELECT service, counted.topic, count, json_extract(payload, '$.created_at')
FROM counted JOIN lucius_outbox_messages ON seq = first
"""

PUBLISH_REPORT = """
INSERT INTO lucius_ledger_reports (process_id, at, document) VALUES (?, ?, ?)
ON CONFLICT DO UPDATE SET at = excluded.at, document = excluded.document
"""
REPORTS = "SELECT process_id, at, document FROM lucius_ledger_reports WHERE at >= ?"
WITHDRAW_REPORT = "DELETE FROM lucius_ledger_reports WHERE process_id = ?"
PRUNE_REPORTS = """
DELETE FROM lucius_ledger_reports WHERE process_id IN (
    SELECT process_id FROM lucius_ledger_reports WHERE at < ? LIMIT ?
)
"""


def jobs_page(tenant: bool, cursor: bool) -> str:
    """Candidates of one page; the state and the type are looked at afterwards, so that no index
    has to move with every state."""
    index = "lucius_ledger_jobs_of_tenant" if tenant else "sqlite_autoindex_lucius_ledger_jobs_1"
    conditions = [
        *(["j.tenant_id = :tenant_id"] if tenant else []),
        *(["j.job_id < :cursor"] if cursor else []),
    ]
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"""
SELECT j.job_id, j.created_at, j.state, j.request_type, j.job_no
FROM lucius_ledger_jobs j INDEXED BY {index} {where} ORDER BY j.job_id DESC LIMIT :scan
"""


JOBS = f"""
SELECT p.document, {_JOB} FROM lucius_ledger_jobs j JOIN lucius_ledger_plans p USING (job_no)
WHERE j.job_no IN (SELECT value FROM json_each(?)) ORDER BY j.job_id DESC
"""


def letters_page(tenant: bool, cursor: bool) -> str:
    conditions = [
        "(:kind IS NULL OR kind = :kind)",
        "(:code IS NULL OR code = :code)",
        *(["tenant_id = :tenant_id"] if tenant else []),
        *(["(first_at, id) < (:first_at, :id)"] if cursor else []),
    ]
    return f"""
SELECT id, kind, tenant_id, job_id, step_id, attempt_no, code, message, first_at, last_at,
       redriven_by
FROM lucius_ledger_dead_letters WHERE {" AND ".join(conditions)}
ORDER BY first_at DESC, id DESC LIMIT :limit
"""
