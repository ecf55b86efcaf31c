-- Times are microseconds since 1970 in UTC. Directives are in lucius_outbox_messages.

CREATE TABLE lucius_ledger_jobs (
    -- Rows of a job are found by this number: its plan, and its steps by 32 * job_no + step_index.
    job_no INTEGER PRIMARY KEY,
    job_id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    tenant_id TEXT NOT NULL,
    request_type TEXT NOT NULL,
    mode TEXT NOT NULL,
    engine TEXT NOT NULL,
    idempotency_entry TEXT NOT NULL,
    -- At or before the job's next deadline; none when it has none.
    due_at INTEGER,
    due_kind TEXT,
    created_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    current_step_id TEXT NOT NULL,
    current_step_index INTEGER NOT NULL,
    attempts_total INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    refusals INTEGER NOT NULL,
    final_output TEXT,
    error_code TEXT,
    error_message TEXT,
    updated_at INTEGER NOT NULL,
    completed_at INTEGER
);
CREATE INDEX lucius_ledger_jobs_of_tenant ON lucius_ledger_jobs (tenant_id, job_id);
CREATE INDEX lucius_ledger_due ON lucius_ledger_jobs (due_kind, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lucius_ledger_ended ON lucius_ledger_jobs (completed_at)
    WHERE completed_at IS NOT NULL;
CREATE INDEX lucius_ledger_open ON lucius_ledger_jobs (mode, tenant_id)
    WHERE completed_at IS NULL;
CREATE INDEX lucius_ledger_ending ON lucius_ledger_jobs (state)
    WHERE state IN ('CANCELLING', 'PAUSING');

-- What never changes after creation, in one document: apart from the columns above, since SQLite
-- writes a row anew as a whole.
CREATE TABLE lucius_ledger_plans (
    job_no INTEGER PRIMARY KEY,
    document TEXT NOT NULL
);

CREATE TABLE lucius_ledger_steps (
    step_no INTEGER PRIMARY KEY,
    state TEXT NOT NULL,
    attempt_no INTEGER NOT NULL,
    lease_id TEXT,
    lease_expires_at INTEGER,
    ack_deadline INTEGER,
    ceiling_at INTEGER,
    next_attempt_at INTEGER,
    attempts TEXT NOT NULL,
    stray_replies INTEGER NOT NULL,
    progress TEXT,
    artifacts TEXT NOT NULL,
    artifacts_bytes INTEGER NOT NULL,
    result_ref TEXT,
    last_error_code TEXT,
    last_error_message TEXT,
    updated_at INTEGER NOT NULL,
    completed_at INTEGER
);

-- The events of one commit, as a list of their fields in order; numbered by the last of them.
CREATE TABLE lucius_ledger_events (
    job_no INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (job_no, last_seq)
) WITHOUT ROWID;

CREATE TABLE lucius_ledger_idempotency (
    tenant_id TEXT NOT NULL,
    entry TEXT NOT NULL,
    content_hash TEXT NOT NULL,
    job_id TEXT NOT NULL,
    PRIMARY KEY (tenant_id, entry)
) WITHOUT ROWID;

-- Jobs that are not terminal: one row per tenant, one per mode, one for all.
CREATE TABLE lucius_ledger_in_flight (
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    jobs INTEGER NOT NULL CHECK (jobs >= 0),
    PRIMARY KEY (scope, name)
) WITHOUT ROWID;

CREATE TABLE lucius_ledger_dead_letters (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    tenant_id TEXT,
    job_id TEXT,
    step_id TEXT,
    attempt_no INTEGER,
    code TEXT NOT NULL,
    message TEXT NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    redriven_by TEXT
);
CREATE INDEX lucius_ledger_dead_letters_newest ON lucius_ledger_dead_letters (first_at, id);
CREATE INDEX lucius_ledger_dead_letters_of_tenant
    ON lucius_ledger_dead_letters (tenant_id, first_at, id);
CREATE INDEX lucius_ledger_dead_letters_of_job ON lucius_ledger_dead_letters (job_id);
