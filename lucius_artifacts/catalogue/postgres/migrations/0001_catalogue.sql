-- Events are in lucius_outbox_messages. Text in an index is COLLATE "C", so that it sorts as in the
-- client.

CREATE TABLE lucius_artifacts_uploads (
    upload_id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    length bigint NOT NULL,
    part_size bigint NOT NULL,
    object_key text COLLATE "C" NOT NULL,
    challenge text NOT NULL,
    state text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    expires_at timestamptz NOT NULL,
    ended_at timestamptz,
    reason text,
    proof_refused boolean NOT NULL
);
CREATE INDEX lucius_artifacts_uploads_expiring ON lucius_artifacts_uploads (expires_at, upload_id)
    WHERE state IN ('initiated', 'parts_uploading', 'pending_commit');
CREATE INDEX lucius_artifacts_uploads_of_tenant ON lucius_artifacts_uploads (tenant_id)
    WHERE state IN ('initiated', 'parts_uploading', 'pending_commit');
CREATE INDEX lucius_artifacts_uploads_of_digest ON lucius_artifacts_uploads (digest, upload_id)
    WHERE state IN ('initiated', 'parts_uploading', 'pending_commit');

CREATE TABLE lucius_artifacts_blobs (
    digest text COLLATE "C" NOT NULL,
    length bigint NOT NULL,
    object_key text COLLATE "C" PRIMARY KEY,
    state text COLLATE "C" NOT NULL,
    created_at timestamptz NOT NULL,
    needed_at timestamptz NOT NULL,
    delete_after timestamptz,
    eligible_at timestamptz,
    marked_by text,
    deleted_at timestamptz
) WITH (
    -- Every publication writes the blobs that it needs, and every collection most of them: room
    -- for the next version of a row beside the last one.
    fillfactor = 80
);
CREATE UNIQUE INDEX lucius_artifacts_blobs_there ON lucius_artifacts_blobs (digest)
    WHERE state <> 'deleted';
CREATE INDEX lucius_artifacts_blobs_in_state
    ON lucius_artifacts_blobs (state, digest, object_key);

CREATE TABLE lucius_artifacts_claims (
    tenant_id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    claimed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, digest)
);
CREATE INDEX lucius_artifacts_claims_of_digest ON lucius_artifacts_claims (digest);

CREATE TABLE lucius_artifacts_versions (
    tenant_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    state text NOT NULL,
    created_at timestamptz NOT NULL,
    created_by text NOT NULL,
    job_id text COLLATE "C",
    step_id text,
    attempt_no bigint,
    epoch bigint,
    published_at timestamptz,
    tombstoned_at timestamptz,
    retained_until timestamptz,
    reason text,
    PRIMARY KEY (tenant_id, name, number)
);
CREATE INDEX lucius_artifacts_versions_of_job
    ON lucius_artifacts_versions (job_id, tenant_id, name, number) WHERE job_id IS NOT NULL;

CREATE TABLE lucius_artifacts_entries (
    tenant_id text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    path text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    length bigint NOT NULL,
    media_type text NOT NULL,
    PRIMARY KEY (tenant_id, name, number, path)
);
-- In the order in which references are listed: who asks for ten need not read all of them.
CREATE INDEX lucius_artifacts_entries_of_digest
    ON lucius_artifacts_entries (digest, (name || '/v' || CAST(number AS TEXT)), tenant_id);

CREATE TABLE lucius_artifacts_holds (
    job_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    digest text COLLATE "C" NOT NULL,
    held_at timestamptz NOT NULL,
    PRIMARY KEY (job_id, digest)
);
CREATE INDEX lucius_artifacts_holds_of_digest ON lucius_artifacts_holds (digest, job_id);
CREATE INDEX lucius_artifacts_holds_oldest ON lucius_artifacts_holds (job_id, held_at, digest);

CREATE TABLE lucius_artifacts_doomed (
    object_key text COLLATE "C" PRIMARY KEY,
    delete_after timestamptz NOT NULL,
    why text NOT NULL
);
CREATE INDEX lucius_artifacts_doomed_due ON lucius_artifacts_doomed (delete_after, object_key);

CREATE TABLE lucius_artifacts_runs (
    run_id text COLLATE "C" PRIMARY KEY,
    phase text NOT NULL,
    started_at timestamptz NOT NULL,
    until timestamptz NOT NULL,
    ended_at timestamptz
);
-- One value for all rows that it holds, so it holds one.
CREATE UNIQUE INDEX lucius_artifacts_runs_current
    ON lucius_artifacts_runs ((phase IN ('marking', 'sweeping')))
    WHERE phase IN ('marking', 'sweeping');

CREATE TABLE lucius_artifacts_audit (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    actor text NOT NULL,
    tenant_id text COLLATE "C",
    action text NOT NULL,
    subject text COLLATE "C" NOT NULL,
    detail text NOT NULL
);
CREATE INDEX lucius_artifacts_audit_of_subject ON lucius_artifacts_audit (subject, at, seq);
