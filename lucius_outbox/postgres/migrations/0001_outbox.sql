CREATE TABLE lucius_outbox_messages (
    id uuid PRIMARY KEY,
    -- Order of one producer's commits; created_at is the same for a whole transaction.
    seq bigint GENERATED ALWAYS AS IDENTITY,
    namespace text NOT NULL,
    topic text NOT NULL,
    tenant_id text,
    dedupe_key text,
    ordering_key text,
    payload jsonb NOT NULL,
    status text NOT NULL DEFAULT 'pending'
        CHECK (status IN ('pending', 'processing', 'delivered', 'dead')),
    -- A due row that was found behind an earlier live row of its ordering key; it leaves the index
    -- of due rows until that one has ended. See docs/explanation/outbox.md.
    waiting boolean NOT NULL DEFAULT false,
    attempts integer NOT NULL DEFAULT 0,
    reclaims integer NOT NULL DEFAULT 0,
    claim_no bigint,
    next_attempt_at timestamptz NOT NULL DEFAULT now(),
    locked_by uuid,
    locked_until timestamptz,
    last_error text,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((status = 'processing') = (locked_by IS NOT NULL)),
    CHECK ((locked_by IS NULL) = (locked_until IS NULL))
) WITH (
    -- Every row is updated twice in its life: vacuum and plan by what changed, not by table size.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

CREATE UNIQUE INDEX lucius_outbox_dedupe ON lucius_outbox_messages (namespace, topic, dedupe_key)
    WHERE dedupe_key IS NOT NULL;

-- Claims look at rows of one status only, so delivered rows are in none of their indexes.
CREATE INDEX lucius_outbox_due ON lucius_outbox_messages (namespace, next_attempt_at, seq)
    WHERE status = 'pending' AND NOT waiting;
CREATE INDEX lucius_outbox_leases ON lucius_outbox_messages (namespace, locked_until)
    WHERE status = 'processing';
CREATE INDEX lucius_outbox_keys ON lucius_outbox_messages (namespace, topic, ordering_key, seq)
    WHERE ordering_key IS NOT NULL AND status IN ('pending', 'processing');
CREATE INDEX lucius_outbox_delivered ON lucius_outbox_messages (namespace, updated_at)
    WHERE status = 'delivered';
CREATE INDEX lucius_outbox_dead ON lucius_outbox_messages (namespace, seq)
    WHERE status = 'dead';

CREATE TABLE lucius_outbox_namespaces (
    namespace text PRIMARY KEY,
    replay_forbidden boolean NOT NULL
);

CREATE TABLE lucius_outbox_replays (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id uuid NOT NULL,
    namespace text NOT NULL,
    replayed_by text NOT NULL,
    reason text NOT NULL,
    attempts integer NOT NULL,
    last_error text,
    replayed_at timestamptz NOT NULL
);
CREATE INDEX lucius_outbox_replays_newest ON lucius_outbox_replays (namespace, id);
