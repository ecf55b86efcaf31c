-- Times are microseconds since 1970 in UTC. Events are in lucius_outbox_messages.

CREATE TABLE lucius_artifacts_uploads (
    upload_id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    length INTEGER NOT NULL,
    part_size INTEGER NOT NULL,
    object_key TEXT NOT NULL,
    challenge TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    ended_at INTEGER,
    reason TEXT,
    proof_refused INTEGER NOT NULL
);
CREATE INDEX lucius_artifacts_uploads_expiring ON lucius_artifacts_uploads (expires_at, upload_id)
    WHERE state IN ('initiated', 'parts_uploading', 'pending_commit');
CREATE INDEX lucius_artifacts_uploads_of_tenant ON lucius_artifacts_uploads (tenant_id)
    WHERE state IN ('initiated', 'parts_uploading', 'pending_commit');
CREATE INDEX lucius_artifacts_uploads_of_digest ON lucius_artifacts_uploads (digest, upload_id)
    WHERE state IN ('initiated', 'parts_uploading', 'pending_commit');

CREATE TABLE lucius_artifacts_blobs (
    digest TEXT NOT NULL,
    length INTEGER NOT NULL,
    object_key TEXT PRIMARY KEY,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    needed_at INTEGER NOT NULL,
    delete_after INTEGER,
    eligible_at INTEGER,
    marked_by TEXT,
    deleted_at INTEGER
);
CREATE UNIQUE INDEX lucius_artifacts_blobs_there ON lucius_artifacts_blobs (digest)
    WHERE state <> 'deleted';
CREATE INDEX lucius_artifacts_blobs_in_state
    ON lucius_artifacts_blobs (state, digest, object_key);

CREATE TABLE lucius_artifacts_claims (
    tenant_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    claimed_at INTEGER NOT NULL,
    PRIMARY KEY (tenant_id, digest)
) WITHOUT ROWID;
CREATE INDEX lucius_artifacts_claims_of_digest ON lucius_artifacts_claims (digest);

CREATE TABLE lucius_artifacts_versions (
    tenant_id TEXT NOT NULL,
    name TEXT NOT NULL,
    number INTEGER NOT NULL,
    state TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    created_by TEXT NOT NULL,
    job_id TEXT,
    step_id TEXT,
    attempt_no INTEGER,
    epoch INTEGER,
    published_at INTEGER,
    tombstoned_at INTEGER,
    retained_until INTEGER,
    reason TEXT,
    PRIMARY KEY (tenant_id, name, number)
) WITHOUT ROWID;
CREATE INDEX lucius_artifacts_versions_of_job
    ON lucius_artifacts_versions (job_id, tenant_id, name, number) WHERE job_id IS NOT NULL;

CREATE TABLE lucius_artifacts_entries (
    tenant_id TEXT NOT NULL,
    name TEXT NOT NULL,
    number INTEGER NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    length INTEGER NOT NULL,
    media_type TEXT NOT NULL,
    PRIMARY KEY (tenant_id, name, number, path)
) WITHOUT ROWID;
-- In the order in which references are listed: who asks for ten need not read all of them.
CREATE INDEX lucius_artifacts_entries_of_digest
    ON lucius_artifacts_entries (digest, name || '/v' || CAST(number AS TEXT), tenant_id);

CREATE TABLE lucius_artifacts_holds (
    job_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    held_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, digest)
) WITHOUT ROWID;
CREATE INDEX lucius_artifacts_holds_of_digest ON lucius_artifacts_holds (digest, job_id);
CREATE INDEX lucius_artifacts_holds_oldest ON lucius_artifacts_holds (job_id, held_at, digest);

CREATE TABLE lucius_artifacts_doomed (
    object_key TEXT PRIMARY KEY,
    delete_after INTEGER NOT NULL,
    why TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX lucius_artifacts_doomed_due ON lucius_artifacts_doomed (delete_after, object_key);

CREATE TABLE lucius_artifacts_runs (
    run_id TEXT PRIMARY KEY,
    phase TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    until INTEGER NOT NULL,
    ended_at INTEGER
) WITHOUT ROWID;
-- One value for all rows that it holds, so it holds one.
CREATE UNIQUE INDEX lucius_artifacts_runs_current
    ON lucius_artifacts_runs (phase IN ('marking', 'sweeping'))
    WHERE phase IN ('marking', 'sweeping');

CREATE TABLE lucius_artifacts_audit (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    actor TEXT NOT NULL,
    tenant_id TEXT,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX lucius_artifacts_audit_of_subject ON lucius_artifacts_audit (subject, at, seq);
