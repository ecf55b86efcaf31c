"""The SQL. Each claim index is named, so that no statistics can talk SQLite into a scan."""

# As a claim will leave them; then what the claim itself needs.
_CLAIM_COLUMNS = """
    id, namespace, topic, tenant_id, dedupe_key, ordering_key, payload,
    attempts + (status = 'pending'), reclaims + (status = 'processing'),
    status = 'processing', created_at, next_attempt_at, seq
"""
_DEAD_COLUMNS = """
    id, namespace, topic, tenant_id, dedupe_key, ordering_key, payload, attempts, reclaims,
    last_error, created_at
"""
_HELD = """
    id IN (SELECT value FROM json_each(?)) AND locked_by = ? AND claim_no = ?
    AND status = 'processing'
"""

EXPIRED = f"""
SELECT {_CLAIM_COLUMNS} FROM lucius_outbox_messages INDEXED BY lucius_outbox_leases
WHERE namespace = ? AND status = 'processing' AND locked_until < ? AND reclaims < ?
ORDER BY locked_until, seq LIMIT ?
"""

DUE = f"""
SELECT {_CLAIM_COLUMNS} FROM lucius_outbox_messages INDEXED BY lucius_outbox_due
WHERE namespace = ? AND status = 'pending' AND waiting = 0 AND next_attempt_at <= ?
  AND attempts < ?
ORDER BY next_attempt_at, seq LIMIT ?
"""

_IN_QUEUES = """
FROM lucius_outbox_messages AS m INDEXED BY lucius_outbox_queues
WHERE m.namespace = :namespace AND m.status = 'pending' AND m.waiting = 0
"""


def _steps(first: str, following: str, end: str = "") -> str:
    """A recursive query that takes one queue per step, by a seek in the index of queues: DISTINCT
    would read the entries of all rows."""
    return f"""
WITH RECURSIVE found (queue) AS (
    SELECT (SELECT m.queue {_IN_QUEUES} AND {first} ORDER BY m.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT m.queue {_IN_QUEUES} AND {following} ORDER BY m.queue LIMIT 1)
    FROM found WHERE found.queue IS NOT NULL {end}
)
SELECT queue FROM found WHERE queue IS NOT NULL
"""


QUEUES = _steps(
    "m.queue > :after AND m.queue <= :upto",
    "m.queue > found.queue AND m.queue <= :upto",
    "LIMIT :limit",
)

# Behind all queues of the group: the separator's successor comes after the separator.
QUEUE_GROUPS = _steps(
    "m.queue IS NOT NULL",
    """m.queue > CASE instr(found.queue, :separator) WHEN 0 THEN found.queue
        ELSE substr(found.queue, 1, instr(found.queue, :separator) - 1) || :successor END""",
)

DUE_IN_QUEUE = f"""
SELECT {_CLAIM_COLUMNS} FROM lucius_outbox_messages INDEXED BY lucius_outbox_queues
WHERE namespace = ? AND queue = ? AND status = 'pending' AND waiting = 0 AND ordering_key IS NULL
  AND next_attempt_at <= ? AND attempts < ?
ORDER BY next_attempt_at, seq LIMIT ?
"""

NAMED = f"""
SELECT {_CLAIM_COLUMNS} FROM lucius_outbox_messages INDEXED BY lucius_outbox_dedupe
WHERE namespace = ? AND topic = ? AND dedupe_key = ? AND waiting = 0 AND (
    (status = 'pending' AND attempts < ?)
    OR (status = 'processing' AND locked_until < ? AND reclaims < ?)
)
"""

CLAIM = """
UPDATE lucius_outbox_messages
SET attempts = attempts + (status = 'pending'), reclaims = reclaims + (status = 'processing'),
    status = 'processing', claim_no = ?, locked_by = ?, locked_until = ?, updated_at = ?
WHERE seq IN (SELECT value FROM json_each(?))
"""

ENQUEUE_CLAIMED = """
INSERT INTO lucius_outbox_messages
    (id, namespace, topic, tenant_id, dedupe_key, payload, status, attempts, claim_no, locked_by,
     locked_until, next_attempt_at, created_at, updated_at, queue)
VALUES (?, ?, ?, ?, ?, ?, 'processing', 1, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (namespace, topic, dedupe_key) WHERE dedupe_key IS NOT NULL DO NOTHING
"""

EARLIER = """
SELECT 1 FROM lucius_outbox_messages INDEXED BY lucius_outbox_keys
WHERE namespace = ? AND topic = ? AND ordering_key = ? AND seq < ?
  AND status IN ('pending', 'processing')
LIMIT 1
"""

SET_ASIDE = """
UPDATE lucius_outbox_messages SET waiting = 1 WHERE seq IN (SELECT value FROM json_each(?))
"""

NEXT_OF_KEY = """
UPDATE lucius_outbox_messages SET waiting = 0
WHERE waiting = 1 AND seq = (
    SELECT seq FROM lucius_outbox_messages INDEXED BY lucius_outbox_keys
    WHERE namespace = ? AND topic = ? AND ordering_key = ? AND status IN ('pending', 'processing')
    ORDER BY seq LIMIT 1
)
"""

HELD = f"SELECT id FROM lucius_outbox_messages WHERE {_HELD}"

_ACK = """
UPDATE lucius_outbox_messages
SET status = 'delivered', locked_by = NULL, locked_until = NULL, updated_at = ?
"""
ACK = f"{_ACK} WHERE {_HELD}"
# A ledger acks rows one by one, each in the transaction of its job.
ACK_ONE = f"{_ACK} WHERE id = ? AND locked_by = ? AND claim_no = ? AND status = 'processing'"

NACK_RETRY = f"""
UPDATE lucius_outbox_messages
SET status = 'pending', locked_by = NULL, locked_until = NULL,
    next_attempt_at = ?, last_error = ?, updated_at = ?
WHERE {_HELD}
"""

NACK_DEAD = f"""
UPDATE lucius_outbox_messages
SET status = 'dead', locked_by = NULL, locked_until = NULL, last_error = ?, updated_at = ?
WHERE {_HELD}
RETURNING {_DEAD_COLUMNS}
"""

RELEASE = f"""
UPDATE lucius_outbox_messages
SET status = 'pending', locked_by = NULL, locked_until = NULL, attempts = attempts - 1,
    next_attempt_at = min(next_attempt_at, ?1), updated_at = ?1
WHERE {_HELD}
"""

EXTEND = f"""
UPDATE lucius_outbox_messages SET locked_until = ?, updated_at = ? WHERE {_HELD}
"""

SPENT_PENDING = """
SELECT seq, last_error FROM lucius_outbox_messages INDEXED BY lucius_outbox_due
WHERE namespace = ? AND status = 'pending' AND waiting = 0 AND attempts >= ?
ORDER BY next_attempt_at, seq LIMIT ?
"""

SPENT_PROCESSING = """
SELECT seq, 'its lease expired too often: does publishing it end the process?'
FROM lucius_outbox_messages INDEXED BY lucius_outbox_leases
WHERE namespace = ? AND status = 'processing' AND locked_until < ? AND reclaims >= ?
ORDER BY locked_until, seq LIMIT ?
"""

SWEEP = f"""
UPDATE lucius_outbox_messages
SET status = 'dead', locked_by = NULL, locked_until = NULL, last_error = ?,
    updated_at = ?
WHERE seq = ?
RETURNING {_DEAD_COLUMNS}
"""

REPLAY_FORBIDDEN = """
SELECT 1 FROM lucius_outbox_namespaces WHERE namespace = ? AND replay_forbidden
"""

FORBID_REPLAY = """
INSERT INTO lucius_outbox_namespaces VALUES (?, ?)
ON CONFLICT (namespace) DO UPDATE SET replay_forbidden = excluded.replay_forbidden
"""

AUDIT_REPLAY = """
INSERT INTO lucius_outbox_replays
    (message_id, namespace, replayed_by, reason, replayed_at, attempts, last_error)
SELECT id, namespace, ?, ?, ?, attempts, last_error FROM lucius_outbox_messages
WHERE namespace = ? AND status = 'dead' AND id IN (SELECT value FROM json_each(?))
ORDER BY seq
"""

REPLAY = """
UPDATE lucius_outbox_messages
SET status = 'pending', attempts = 0, reclaims = 0, next_attempt_at = ?, updated_at = ?
WHERE namespace = ? AND status = 'dead' AND id IN (SELECT value FROM json_each(?))
"""

REPLAYS = """
SELECT message_id, replayed_by, reason, replayed_at, attempts, last_error
FROM lucius_outbox_replays WHERE namespace = ? ORDER BY id DESC LIMIT ?
"""

DEAD = f"""
SELECT {_DEAD_COLUMNS} FROM lucius_outbox_messages INDEXED BY lucius_outbox_dead
WHERE namespace = ? AND status = 'dead' ORDER BY seq LIMIT ?
"""

# One branch per partial index, so that nothing but the live and the dead rows is read.
STATS = """
SELECT topic, 1 AS pending, 0 AS processing, 0 AS dead, 0 AS delivered, created_at
FROM lucius_outbox_messages INDEXED BY lucius_outbox_due
WHERE namespace = :namespace AND status = 'pending' AND waiting = 0
UNION ALL
SELECT topic, 1, 0, 0, 0, created_at FROM lucius_outbox_messages INDEXED BY lucius_outbox_keys
WHERE namespace = :namespace AND ordering_key IS NOT NULL
  AND status IN ('pending', 'processing') AND status = 'pending' AND waiting = 1
UNION ALL
SELECT topic, 0, 1, 0, 0, created_at FROM lucius_outbox_messages INDEXED BY lucius_outbox_leases
WHERE namespace = :namespace AND status = 'processing'
UNION ALL
SELECT topic, 0, 0, 1, 0, NULL FROM lucius_outbox_messages INDEXED BY lucius_outbox_dead
WHERE namespace = :namespace AND status = 'dead'
"""

STATS_DELIVERED = """
UNION ALL
SELECT topic, 0, 0, 0, 1, NULL FROM lucius_outbox_messages INDEXED BY lucius_outbox_delivered
WHERE namespace = :namespace AND status = 'delivered'
"""

PRUNE = """
DELETE FROM lucius_outbox_messages WHERE seq IN (
    SELECT seq FROM lucius_outbox_messages INDEXED BY lucius_outbox_delivered
    WHERE namespace = ? AND status = 'delivered' AND updated_at < ?
    ORDER BY updated_at LIMIT ?
)
"""


def by_topic(rows: str) -> str:
    return f"""
SELECT topic, sum(pending), sum(processing), sum(dead), sum(delivered), min(created_at)
FROM ({rows}) GROUP BY topic ORDER BY topic
"""
