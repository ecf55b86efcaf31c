"""The SQL. `now` is the server's clock unless the store was given one of its own (in tests)."""

from collections.abc import Iterable

CHANNEL = "lucius_outbox"

_NOW = "coalesce(%(now)s::timestamptz, statement_timestamp())"
_HELD = """
    m.locked_by = %(worker)s::uuid AND m.claim_no = %(claim_no)s AND m.status = 'processing'
"""
_THESE = "m.id = ANY(%(ids)s::uuid[])"
# Looked for only when the numbers differ, which is rare.
_LOST = """
SELECT id::text FROM unnest(%(ids)s::uuid[]) AS given (id)
WHERE (SELECT count(*) FROM held) <> cardinality(%(ids)s::uuid[])
  AND id NOT IN (SELECT id FROM held)
"""
_CLAIM_COLUMNS = """
    m.id::text, m.namespace, m.topic, m.tenant_id, m.dedupe_key, m.ordering_key, m.payload,
    m.attempts, m.reclaims, m.claim_no
"""
_TAKEN = f"""
    attempts = m.attempts + (m.status = 'pending')::integer,
    reclaims = m.reclaims + (m.status = 'processing')::integer,
    claim_no = %(claim_no)s,
    status = 'processing',
    locked_by = %(worker)s::uuid,
    locked_until = {_NOW} + %(lease)s,
    updated_at = {_NOW}
"""
_DEAD_COLUMNS = """
    m.id::text, m.namespace, m.topic, m.tenant_id, m.dedupe_key, m.ordering_key, m.payload,
    m.attempts, m.reclaims, m.last_error, m.created_at
"""

# All rows are one JSON text: an array per column costs the client more than everything else here.
ENQUEUE = f"""
WITH fresh AS (
    INSERT INTO lucius_outbox_messages
        (id, namespace, topic, tenant_id, dedupe_key, ordering_key, payload, next_attempt_at, queue)
    SELECT id, namespace, topic, tenant_id, dedupe_key, ordering_key,
           coalesce(payload, 'null'), coalesce(not_before, now()), queue
    FROM ROWS FROM (json_to_recordset(%(rows)s::json) AS (
        id uuid, namespace text, topic text, tenant_id text, dedupe_key text, ordering_key text,
        payload jsonb, not_before timestamptz, queue text
    )) WITH ORDINALITY AS message (
        id, namespace, topic, tenant_id, dedupe_key, ordering_key, payload, not_before, queue,
        position
    )
    ORDER BY position
    ON CONFLICT (namespace, topic, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
    RETURNING id, namespace
), told AS (
    -- Sent when the transaction commits, and only then.
    SELECT pg_notify('{CHANNEL}', namespace) FROM (SELECT DISTINCT namespace FROM fresh) AS names
)
-- Only what was there before travels back: mostly nothing.
SELECT id::text FROM unnest(%(ids)s::uuid[]) AS given (id)
WHERE (SELECT count(*) FROM told) >= 0
  AND (SELECT count(*) FROM fresh) <> cardinality(%(ids)s::uuid[])
  AND id NOT IN (SELECT id FROM fresh)
"""

# A row behind an earlier live row of its key is set aside (`waiting`), so that no later claim meets
# it again; whoever ends that earlier row brings the next one back (NEXT_OF_KEYS). Nobody may end it
# between our look at it and our commit, else nobody would bring ours back: hence the shared lock.
# Where another transaction holds it already, our row is left as it is and looked at again.
#
# Rows are updated by `id = ANY(ARRAY(...))`, not by a join: the planner cannot know that a LIMIT is
# small, and would read the whole table for a hash join.
CLAIM = f"""
WITH expired AS (
    SELECT id FROM lucius_outbox_messages
    WHERE namespace = %(namespace)s AND status = 'processing'
      AND locked_until < {_NOW} AND reclaims < %(max_reclaims)s
    ORDER BY locked_until, seq
    LIMIT %(size)s
    FOR UPDATE SKIP LOCKED
), due AS (
    SELECT id, topic, ordering_key, seq FROM lucius_outbox_messages
    WHERE namespace = %(namespace)s AND status = 'pending' AND NOT waiting
      AND next_attempt_at <= {_NOW} AND attempts < %(max_attempts)s
    ORDER BY next_attempt_at, seq
    LIMIT %(size)s - (SELECT count(*) FROM expired)
    FOR UPDATE SKIP LOCKED
), blocked AS (
    SELECT id, topic, ordering_key, seq FROM due
    -- As a scalar and not as EXISTS, which is planned as a join over all keys.
    WHERE ordering_key IS NOT NULL AND seq > (
        SELECT first.seq FROM lucius_outbox_messages AS first
        WHERE first.namespace = %(namespace)s AND first.topic = due.topic
          AND first.ordering_key = due.ordering_key AND first.status IN ('pending', 'processing')
        ORDER BY first.seq
        LIMIT 1
    )
), set_aside AS (
    UPDATE lucius_outbox_messages SET waiting = true
    WHERE id = ANY(ARRAY(
        SELECT blocked.id FROM blocked CROSS JOIN LATERAL (
            SELECT FROM lucius_outbox_messages AS earlier
            WHERE earlier.namespace = %(namespace)s AND earlier.topic = blocked.topic
              AND earlier.ordering_key = blocked.ordering_key AND earlier.seq < blocked.seq
              AND earlier.status IN ('pending', 'processing')
            ORDER BY earlier.seq
            LIMIT 1
            FOR SHARE SKIP LOCKED
        ) AS kept
    ))
    RETURNING id
), claimed AS (
    UPDATE lucius_outbox_messages AS m
    SET {_TAKEN}
    WHERE m.id = ANY(ARRAY(
        SELECT id FROM expired UNION ALL SELECT id FROM due
        EXCEPT SELECT id FROM blocked
    ))
    RETURNING {_CLAIM_COLUMNS},
              m.id IN (SELECT id FROM expired) AS reclaimed, m.locked_until, m.created_at,
              m.next_attempt_at, m.seq
)
SELECT aside.count, claimed.id, namespace, topic, tenant_id, dedupe_key, ordering_key, payload,
       attempts, reclaims, claim_no, reclaimed, locked_until, created_at
FROM (SELECT count(*) FROM set_aside) AS aside
LEFT JOIN claimed ON true
ORDER BY claimed.next_attempt_at, claimed.seq
"""

_IN_QUEUES = "namespace = %(namespace)s AND status = 'pending' AND NOT waiting"


def _steps(first: str, following: str) -> str:
    """A recursive query that takes one queue per step, by a seek in the index of queues: DISTINCT
    would read the entries of all rows."""
    return f"""
WITH RECURSIVE found (queue, position) AS (
    (SELECT queue, 1 FROM lucius_outbox_messages
     WHERE {_IN_QUEUES} AND {first}
     ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT next.queue, position + 1 FROM found CROSS JOIN LATERAL (
        SELECT m.queue FROM lucius_outbox_messages AS m
        WHERE {_IN_QUEUES} AND {following}
        ORDER BY m.queue LIMIT 1
    ) AS next
)
SELECT queue, position FROM found
"""


_QUEUES_OF_SPAN = _steps(
    "queue > span.after AND queue <= span.upto AND span.size > 0",
    "m.queue > found.queue AND m.queue <= span.upto AND found.position < span.size",
)
QUEUES = f"""
SELECT span.position - 1, listed.queue
FROM unnest(%(after)s::text[], %(upto)s::text[], %(limits)s::bigint[])
    WITH ORDINALITY AS span (after, upto, size, position)
CROSS JOIN LATERAL (
    {_QUEUES_OF_SPAN}
) AS listed
ORDER BY span.position, listed.position
"""

# Behind all queues of the group: the separator's successor comes after the separator.
_FIRST_OF_GROUPS = _steps(
    "queue IS NOT NULL",
    """m.queue > CASE strpos(found.queue, %(separator)s) WHEN 0 THEN found.queue
        ELSE split_part(found.queue, %(separator)s, 1) || %(successor)s END""",
)
QUEUE_GROUPS = f"SELECT queue FROM ({_FIRST_OF_GROUPS}) AS first ORDER BY position"

# The queue is compared by a range and leads the order, so that no statistics make the planner take
# the index of due rows, in which a rare queue lies behind the rows of all the others.
CLAIM_QUEUES = f"""
WITH expired AS (
    SELECT id, 0::bigint AS position FROM lucius_outbox_messages
    WHERE namespace = %(namespace)s AND status = 'processing'
      AND locked_until < {_NOW} AND reclaims < %(max_reclaims)s
    ORDER BY locked_until, seq
    LIMIT %(expired)s
    FOR UPDATE SKIP LOCKED
), due AS (
    SELECT oldest.id, turn.position
    FROM unnest(%(queues)s::text[], %(counts)s::bigint[])
        WITH ORDINALITY AS turn (queue, size, position)
    CROSS JOIN LATERAL (
        SELECT id FROM lucius_outbox_messages
        WHERE {_IN_QUEUES} AND queue >= turn.queue AND queue <= turn.queue
          AND ordering_key IS NULL
          AND next_attempt_at <= {_NOW} AND attempts < %(max_attempts)s
        ORDER BY queue, next_attempt_at, seq
        LIMIT turn.size
        FOR UPDATE SKIP LOCKED
    ) AS oldest
), chosen AS (
    SELECT id, position FROM expired UNION ALL SELECT id, position FROM due
), claimed AS (
    UPDATE lucius_outbox_messages AS m
    SET {_TAKEN}
    WHERE m.id = ANY(ARRAY(SELECT id FROM chosen))
    RETURNING {_CLAIM_COLUMNS},
              m.id IN (SELECT id FROM expired) AS reclaimed, m.locked_until, m.created_at,
              m.id AS key, m.next_attempt_at, m.seq
)
SELECT claimed.id, namespace, topic, tenant_id, dedupe_key, ordering_key, payload, attempts,
       reclaims, claim_no, reclaimed, locked_until, created_at
FROM claimed JOIN chosen ON chosen.id = claimed.key
ORDER BY chosen.position, claimed.next_attempt_at, claimed.seq
"""

# Locked before it is judged: who waits for the lock judges the row as its holder has left it.
CLAIM_NAMED = f"""
WITH named AS (
    SELECT id, topic, ordering_key, seq, status = 'processing' AS reclaimed
    FROM lucius_outbox_messages
    WHERE namespace = %(namespace)s AND topic = %(topic)s AND dedupe_key = %(dedupe_key)s
      AND NOT waiting AND (
        (status = 'pending' AND attempts < %(max_attempts)s)
        OR (status = 'processing' AND locked_until < {_NOW} AND reclaims < %(max_reclaims)s)
      )
    FOR UPDATE
)
UPDATE lucius_outbox_messages AS m
SET {_TAKEN}
FROM named
WHERE m.id = named.id AND NOT EXISTS (
    SELECT FROM lucius_outbox_messages AS earlier
    WHERE earlier.namespace = %(namespace)s AND earlier.topic = named.topic
      AND earlier.ordering_key = named.ordering_key AND earlier.seq < named.seq
      AND earlier.status IN ('pending', 'processing')
)
RETURNING {_CLAIM_COLUMNS}, named.reclaimed, m.locked_until, m.created_at
"""

ACK = f"""
WITH held AS (
    UPDATE lucius_outbox_messages AS m
    SET status = 'delivered', locked_by = NULL, locked_until = NULL, updated_at = {_NOW}
    WHERE {_THESE} AND {_HELD}
    RETURNING m.id
)
{_LOST}
"""

RELEASE = f"""
WITH held AS (
    UPDATE lucius_outbox_messages AS m
    SET status = 'pending', locked_by = NULL, locked_until = NULL, attempts = m.attempts - 1,
        next_attempt_at = least(m.next_attempt_at, {_NOW}), updated_at = {_NOW}
    WHERE {_THESE} AND {_HELD}
    RETURNING m.id
)
{_LOST}
"""

EXTEND = f"""
WITH held AS (
    UPDATE lucius_outbox_messages AS m
    SET locked_until = {_NOW} + %(lease)s, updated_at = {_NOW}
    WHERE {_THESE} AND {_HELD}
    RETURNING m.id
)
{_LOST}
"""

RETRY = f"""
WITH held AS (
    UPDATE lucius_outbox_messages AS m
    SET status = 'pending', locked_by = NULL, locked_until = NULL,
        next_attempt_at = {_NOW} + failed.delay, last_error = failed.error, updated_at = {_NOW}
    FROM unnest(%(ids)s::uuid[], %(delays)s::interval[], %(errors)s::text[])
        AS failed (id, delay, error)
    WHERE m.id = failed.id AND {_THESE} AND {_HELD}
    RETURNING m.id
)
{_LOST}
"""

DIE = f"""
UPDATE lucius_outbox_messages AS m
SET status = 'dead', locked_by = NULL, locked_until = NULL, last_error = %(error)s,
    updated_at = {_NOW}
WHERE {_THESE} AND {_HELD}
RETURNING {_DEAD_COLUMNS}
"""

# A statement of its own, after the one that ended the rows: it must see what a claim set aside
# while that one waited for the claim's shared lock.
NEXT_OF_KEYS = """
UPDATE lucius_outbox_messages AS m SET waiting = false
FROM unnest(%(topics)s::text[], %(keys)s::text[]) AS ended (topic, key) CROSS JOIN LATERAL (
    SELECT id FROM lucius_outbox_messages AS next
    WHERE next.namespace = %(namespace)s AND next.topic = ended.topic
      AND next.ordering_key = ended.key AND next.status IN ('pending', 'processing')
    ORDER BY next.seq
    LIMIT 1
) AS first
WHERE m.id = first.id AND m.waiting
"""

SPENT = f"""
SELECT id::text, error FROM (
    (SELECT id, last_error AS error, next_attempt_at AS since FROM lucius_outbox_messages
     WHERE namespace = %(namespace)s AND status = 'pending' AND NOT waiting
       AND attempts >= %(max_attempts)s
     ORDER BY next_attempt_at LIMIT %(limit)s)
    UNION ALL
    (SELECT id, 'its lease expired too often: does publishing it end the process?', locked_until
     FROM lucius_outbox_messages
     WHERE namespace = %(namespace)s AND status = 'processing' AND locked_until < {_NOW}
       AND reclaims >= %(max_reclaims)s
     ORDER BY locked_until LIMIT %(limit)s)
) AS spent
ORDER BY since LIMIT %(limit)s
"""

SWEEP = f"""
UPDATE lucius_outbox_messages AS m
SET status = 'dead', locked_by = NULL, locked_until = NULL, last_error = %(error)s,
    updated_at = {_NOW}
WHERE m.id = (
    SELECT id FROM lucius_outbox_messages
    WHERE id = %(id)s::uuid AND (
        (status = 'pending' AND attempts >= %(max_attempts)s)
        OR (status = 'processing' AND locked_until < {_NOW} AND reclaims >= %(max_reclaims)s)
    )
    FOR UPDATE SKIP LOCKED
)
RETURNING {_DEAD_COLUMNS}
"""

REPLAY_FORBIDDEN = """
SELECT FROM lucius_outbox_namespaces WHERE namespace = %(namespace)s AND replay_forbidden
"""

FORBID_REPLAY = """
INSERT INTO lucius_outbox_namespaces VALUES (%(namespace)s, %(forbidden)s)
ON CONFLICT (namespace) DO UPDATE SET replay_forbidden = excluded.replay_forbidden
"""

REPLAY = f"""
WITH chosen AS (
    SELECT id, seq, attempts, last_error FROM lucius_outbox_messages
    WHERE namespace = %(namespace)s AND status = 'dead' AND id = ANY(%(ids)s::uuid[])
    FOR UPDATE
), audited AS (
    INSERT INTO lucius_outbox_replays
        (message_id, namespace, replayed_by, reason, attempts, last_error, replayed_at)
    SELECT id, %(namespace)s, %(by)s, %(reason)s, attempts, last_error, {_NOW}
    FROM chosen ORDER BY seq
), told AS (
    SELECT pg_notify('{CHANNEL}', %(namespace)s) FROM (SELECT FROM chosen LIMIT 1) AS any_row
)
UPDATE lucius_outbox_messages AS m
SET status = 'pending', attempts = 0, reclaims = 0, next_attempt_at = {_NOW}, updated_at = {_NOW}
FROM chosen, (SELECT count(*) FROM told) AS once
WHERE m.id = chosen.id
"""

REPLAYS = """
SELECT message_id::text, replayed_by, reason, replayed_at, attempts, last_error
FROM lucius_outbox_replays WHERE namespace = %(namespace)s ORDER BY id DESC LIMIT %(limit)s
"""

DEAD = f"""
SELECT {_DEAD_COLUMNS} FROM lucius_outbox_messages AS m
WHERE m.namespace = %(namespace)s AND m.status = 'dead' ORDER BY m.seq LIMIT %(limit)s
"""

# One branch per partial index, so that nothing but the live and the dead rows is read.
_STATS = """
SELECT topic, 1 AS pending, 0 AS processing, 0 AS dead, 0 AS delivered, created_at
FROM lucius_outbox_messages
WHERE namespace = %(namespace)s AND status = 'pending' AND NOT waiting
UNION ALL
SELECT topic, 1, 0, 0, 0, created_at FROM lucius_outbox_messages
WHERE namespace = %(namespace)s AND ordering_key IS NOT NULL
  AND status IN ('pending', 'processing') AND status = 'pending' AND waiting
UNION ALL
SELECT topic, 0, 1, 0, 0, created_at FROM lucius_outbox_messages
WHERE namespace = %(namespace)s AND status = 'processing'
UNION ALL
SELECT topic, 0, 0, 1, 0, NULL FROM lucius_outbox_messages
WHERE namespace = %(namespace)s AND status = 'dead'
"""

_STATS_DELIVERED = """
UNION ALL
SELECT topic, 0, 0, 0, 1, NULL FROM lucius_outbox_messages
WHERE namespace = %(namespace)s AND status = 'delivered'
"""


def _by_topic(rows: str) -> str:
    return f"""
SELECT topic, sum(pending), sum(processing), sum(dead), sum(delivered), min(created_at),
       {_NOW} - min(created_at)
FROM ({rows}) AS rows GROUP BY topic ORDER BY topic
"""


STATS = _by_topic(_STATS)
STATS_WITH_DELIVERED = _by_topic(_STATS + _STATS_DELIVERED)

PRUNE = f"""
DELETE FROM lucius_outbox_messages WHERE id = ANY(ARRAY(
    SELECT id FROM lucius_outbox_messages
    WHERE namespace = %(namespace)s AND status = 'delivered'
      AND updated_at < {_NOW} - %(older_than)s
    ORDER BY updated_at LIMIT %(limit)s
    FOR UPDATE SKIP LOCKED
))
"""


def uuids(ids: Iterable[str]) -> str:
    """An array of our own ids, as PostgreSQL writes one: much cheaper than a list to the driver."""
    return "{" + ",".join(ids) + "}"
