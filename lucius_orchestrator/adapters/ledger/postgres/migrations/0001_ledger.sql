-- Directives are in lucius_outbox_messages. Ids are COLLATE "C", so that they sort as in the client.
-- Documents are text, not jsonb: what was sent comes back, to the last digit.

CREATE TABLE lucius_ledger_jobs (
    job_id text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    request_type text NOT NULL,
    mode text NOT NULL,
    engine text NOT NULL,
    idempotency_entry text NOT NULL,
    -- At or before the job's next deadline; none when it has none.
    due_at timestamptz,
    due_kind text,
    created_at timestamptz NOT NULL,
    state text NOT NULL,
    current_step_id text NOT NULL,
    current_step_index integer NOT NULL,
    attempts_total integer NOT NULL,
    seq bigint NOT NULL,
    refusals bigint NOT NULL,
    final_output text,
    error_code text,
    error_message text,
    updated_at timestamptz NOT NULL,
    completed_at timestamptz,
    -- For an index that does not move with every state.
    unsettled text GENERATED ALWAYS AS
        (CASE WHEN state IN ('CANCELLING', 'PAUSING') THEN state END) STORED
) WITH (
    -- Every commit of a job updates its row: room for the next version beside the last one, and
    -- vacuum by what changed, not by table size.
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);
CREATE INDEX lucius_ledger_jobs_of_tenant ON lucius_ledger_jobs (tenant_id, job_id);
CREATE INDEX lucius_ledger_due ON lucius_ledger_jobs (due_kind, due_at) WHERE due_at IS NOT NULL;
CREATE INDEX lucius_ledger_ended ON lucius_ledger_jobs (completed_at)
    WHERE completed_at IS NOT NULL;
CREATE INDEX lucius_ledger_open ON lucius_ledger_jobs (mode, tenant_id) WHERE completed_at IS NULL;
CREATE INDEX lucius_ledger_unsettled ON lucius_ledger_jobs (unsettled)
    WHERE unsettled IS NOT NULL;

-- What never changes after creation, in one document: apart from the columns above, since an update
-- writes its row anew as a whole.
CREATE TABLE lucius_ledger_plans (
    job_id text COLLATE "C" PRIMARY KEY,
    document text NOT NULL
);

CREATE TABLE lucius_ledger_steps (
    job_id text COLLATE "C" NOT NULL,
    step_index integer NOT NULL,
    state text NOT NULL,
    attempt_no integer NOT NULL,
    lease_id text,
    lease_expires_at timestamptz,
    ack_deadline timestamptz,
    ceiling_at timestamptz,
    next_attempt_at timestamptz,
    attempts text NOT NULL,
    stray_replies bigint NOT NULL,
    progress text,
    artifacts text NOT NULL,
    artifacts_bytes bigint NOT NULL,
    result_ref text,
    last_error_code text,
    last_error_message text,
    updated_at timestamptz NOT NULL,
    completed_at timestamptz,
    PRIMARY KEY (job_id, step_index)
) WITH (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

CREATE TABLE lucius_ledger_events (
    job_id text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    at timestamptz NOT NULL,
    type text NOT NULL,
    step_id text,
    -- As a stray reply gives it: any whole number.
    attempt_no numeric,
    source text,
    target text,
    cause text,
    implied boolean NOT NULL,
    detail text,
    by text,
    PRIMARY KEY (job_id, seq)
);

CREATE TABLE lucius_ledger_idempotency (
    tenant_id text COLLATE "C" NOT NULL,
    entry text COLLATE "C" NOT NULL,
    content_hash text NOT NULL,
    job_id text NOT NULL,
    PRIMARY KEY (tenant_id, entry)
);

-- Jobs that are not terminal: one row per tenant, one per mode, one for all. Whoever finds a limit
-- reached writes -1, which the scope's own constraint refuses.
CREATE TABLE lucius_ledger_in_flight (
    scope text NOT NULL,
    name text COLLATE "C" NOT NULL,
    jobs bigint NOT NULL,
    PRIMARY KEY (scope, name),
    CONSTRAINT lucius_ledger_full_tenant CHECK (scope <> 'TENANT' OR jobs >= 0),
    CONSTRAINT lucius_ledger_full_mode CHECK (scope <> 'MODE' OR jobs >= 0),
    CONSTRAINT lucius_ledger_full_global CHECK (scope <> 'GLOBAL' OR jobs >= 0)
) WITH (
    fillfactor = 20,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_scale_factor = 0
);

CREATE TABLE lucius_ledger_dead_letters (
    id text COLLATE "C" PRIMARY KEY,
    kind text NOT NULL,
    tenant_id text COLLATE "C",
    job_id text,
    step_id text,
    attempt_no numeric,
    code text NOT NULL,
    message text NOT NULL,
    first_at timestamptz NOT NULL,
    last_at timestamptz NOT NULL,
    redriven_by text
);
CREATE INDEX lucius_ledger_dead_letters_newest ON lucius_ledger_dead_letters (first_at, id);
CREATE INDEX lucius_ledger_dead_letters_of_tenant
    ON lucius_ledger_dead_letters (tenant_id, first_at, id);
CREATE INDEX lucius_ledger_dead_letters_of_job ON lucius_ledger_dead_letters (job_id)
    WHERE redriven_by IS NULL;
