"""The SQL, in words that SQLite and PostgreSQL both understand. Values are named `:name`."""

from typing import Any

from lucius_artifacts.catalogue.sql.tables import (
    AUDIT,
    BLOBS,
    CLAIMS,
    DOOMED,
    ENTRIES,
    HOLDS,
    RUNS,
    UPLOADS,
    VERSIONS,
    Table,
)


def insert(table: Table[Any]) -> str:
    columns = ", ".join(table.columns)
    values = ", ".join(f":{column}" for column in table.columns)
    return f"INSERT INTO {table.name} ({columns}) VALUES ({values})"


def insert_new(table: Table[Any]) -> str:
    """A row that is there stays as it is."""
    return f"{insert(table)} ON CONFLICT ({', '.join(table.key)}) DO NOTHING"


def put(table: Table[Any]) -> str:
    changes = ", ".join(f"{column} = excluded.{column}" for column in _plain(table))
    return f"{insert(table)} ON CONFLICT ({', '.join(table.key)}) DO UPDATE SET {changes}"


def update(table: Table[Any]) -> str:
    changes = ", ".join(f"{column} = :{column}" for column in _plain(table))
    key = " AND ".join(f"{column} = :{column}" for column in table.key)
    return f"UPDATE {table.name} SET {changes} WHERE {key}"


def _plain(table: Table[Any]) -> list[str]:
    return [column for column in table.columns if column not in table.key]


def _select(table: Table[Any], rest: str) -> str:
    return f"SELECT {', '.join(table.columns)} FROM {table.name} {rest}"


# As in the partial indexes, which are used for these very words only.
_OPEN = "state IN ('initiated', 'parts_uploading', 'pending_commit')"
_NOT_DELETED = "state <> 'deleted'"
_CURRENT = "phase IN ('marking', 'sweeping')"

UPLOAD = _select(UPLOADS, "WHERE upload_id = :upload_id")
OPEN_UPLOADS = f"SELECT count(*) FROM {UPLOADS.name} WHERE {_OPEN} AND tenant_id = :tenant_id"
ALL_OPEN_UPLOADS = f"SELECT count(*) FROM {UPLOADS.name} WHERE {_OPEN}"
EXPIRED_UPLOADS = _select(
    UPLOADS,
    f"WHERE {_OPEN} AND expires_at <= :now ORDER BY expires_at, upload_id LIMIT :limit",
)

# `LIMIT 1 OFFSET 0` has PostgreSQL ask these for each row, by an index. It would rather read all
# that anybody needs, once, and be in the way of every other transaction.
_ONE = "LIMIT 1 OFFSET 0"
_RETAINED = f"""EXISTS (
    SELECT 1 FROM {VERSIONS.name} AS v
    WHERE v.tenant_id = e.tenant_id AND v.name = e.name AND v.number = e.number
      AND (v.retained_until IS NULL OR v.retained_until > :now) {_ONE}
)"""
_NEEDED = f"""(
    EXISTS (SELECT 1 FROM {ENTRIES.name} AS e WHERE e.digest = b.digest AND {_RETAINED} {_ONE})
    OR EXISTS (SELECT 1 FROM {HOLDS.name} WHERE digest = b.digest {_ONE})
    OR EXISTS (SELECT 1 FROM {UPLOADS.name} WHERE {_OPEN} AND digest = b.digest {_ONE})
)"""


def _needed_by(tenant_id: str, digest: str) -> str:
    """The same for the references of one tenant."""
    own = f"digest = {digest} AND tenant_id = {tenant_id}"
    return f"""(
    EXISTS (
        SELECT 1 FROM {ENTRIES.name} AS e
        WHERE e.digest = {digest} AND e.tenant_id = {tenant_id} AND {_RETAINED} {_ONE}
    )
    OR EXISTS (SELECT 1 FROM {HOLDS.name} WHERE {own} {_ONE})
    OR EXISTS (SELECT 1 FROM {UPLOADS.name} WHERE {_OPEN} AND {own} {_ONE})
)"""


BLOB = _select(BLOBS, f"WHERE {_NOT_DELETED} AND digest = :digest")
BLOBS_IN = _select(
    BLOBS, "WHERE state = :state AND digest > :after ORDER BY digest, object_key LIMIT :limit"
)
IDLE_BLOBS = _select(
    BLOBS,
    f"""AS b
WHERE state = 'live' AND digest > :after AND needed_at < :needed_before AND NOT {_NEEDED}
ORDER BY digest LIMIT :limit""",
)
BLOB_STATS = f"""
SELECT state, count(*), sum(length) FROM {BLOBS.name} WHERE {_NOT_DELETED} GROUP BY state
"""

PAGE = f"""
SELECT count(*), max(digest) FROM (
    SELECT digest FROM {BLOBS.name}
    WHERE {_NOT_DELETED} AND digest > :after ORDER BY digest LIMIT :limit
) AS page
"""
MARK = f"""
UPDATE {BLOBS.name} AS b SET marked_by = :run_id
WHERE {_NOT_DELETED} AND digest > :after AND digest <= :last AND {_NEEDED}
"""

# The index of entries by digest brings them in this order.
REFERENCES = f"""
SELECT 'version' AS kind, tenant_id, who FROM (
    SELECT DISTINCT name || '/v' || CAST(number AS TEXT) AS who, tenant_id
    FROM {ENTRIES.name} AS e WHERE digest = :digest AND {_RETAINED}
    ORDER BY who, tenant_id LIMIT :limit
) AS by_versions
UNION ALL SELECT 'job', tenant_id, who FROM (
    SELECT job_id AS who, tenant_id FROM {HOLDS.name}
    WHERE digest = :digest ORDER BY job_id LIMIT :limit
) AS by_jobs
UNION ALL SELECT 'upload', tenant_id, who FROM (
    SELECT upload_id AS who, tenant_id FROM {UPLOADS.name}
    WHERE {_OPEN} AND digest = :digest ORDER BY upload_id LIMIT :limit
) AS by_uploads
ORDER BY kind, who, tenant_id LIMIT :limit
"""

CLAIM = _select(CLAIMS, "WHERE tenant_id = :tenant_id AND digest = :digest")
CLAIMS_OF = _select(CLAIMS, "WHERE digest = :digest ORDER BY tenant_id")
IDLE_CLAIMS = _select(
    CLAIMS,
    f"""AS c
WHERE tenant_id >= :after_tenant AND (tenant_id, digest) > (:after_tenant, :after)
  AND claimed_at < :needed_before
  AND NOT {_needed_by("c.tenant_id", "c.digest")}
ORDER BY tenant_id, digest LIMIT :limit""",
)
IS_REFERENCED = f"SELECT {_needed_by(':tenant_id', ':digest')}"
DROP_CLAIM = f"DELETE FROM {CLAIMS.name} WHERE tenant_id = :tenant_id AND digest = :digest"
DROP_CLAIMS = f"DELETE FROM {CLAIMS.name} WHERE digest = :digest"

_NAMED = "WHERE tenant_id = :tenant_id AND name = :name"
VERSION = _select(VERSIONS, f"{_NAMED} AND number = :number")
LATEST_NUMBER = f"SELECT number FROM {VERSIONS.name} {_NAMED} ORDER BY number DESC LIMIT 1"
NEWEST_VERSIONS = _select(
    VERSIONS, f"{_NAMED} AND number < :before ORDER BY number DESC LIMIT :limit"
)
NEWEST_OF_JOB = _select(
    VERSIONS,
    "WHERE job_id = :job_id AND tenant_id = :tenant_id AND name = :name"
    " ORDER BY number DESC LIMIT 1",
)
ENTRIES_OF = _select(
    ENTRIES, f"{_NAMED} AND number >= :lowest AND number <= :highest ORDER BY number, path"
)
ARTIFACTS = f"""
SELECT name, max(number), max(number) FILTER (WHERE state = 'published'),
       max(created_at), max(published_at), max(tombstoned_at)
FROM {VERSIONS.name} WHERE tenant_id = :tenant_id AND name > :after
GROUP BY name ORDER BY name LIMIT :limit
"""

HOLD = _select(HOLDS, "WHERE job_id = :job_id AND digest = :digest")
HELD_JOBS = _select(
    HOLDS,
    f"""AS h
WHERE job_id > :after AND NOT EXISTS (
    SELECT 1 FROM {HOLDS.name} AS older
    WHERE older.job_id = h.job_id AND (older.held_at, older.digest) < (h.held_at, h.digest) {_ONE}
)
ORDER BY job_id LIMIT :limit""",
)
DROP_HOLDS = f"DELETE FROM {HOLDS.name} WHERE job_id = :job_id"

DUE_DOOMED = _select(
    DOOMED, "WHERE delete_after <= :now ORDER BY delete_after, object_key LIMIT :limit"
)
COUNT_DOOMED = f"SELECT count(*) FROM {DOOMED.name}"
DROP_DOOMED = f"DELETE FROM {DOOMED.name} WHERE object_key = :object_key"

RUN = _select(RUNS, "WHERE run_id = :run_id")
CURRENT_RUN = _select(RUNS, f"WHERE {_CURRENT}")

RECORDS = _select(AUDIT, "WHERE subject = :subject ORDER BY at DESC, seq DESC LIMIT :limit")
