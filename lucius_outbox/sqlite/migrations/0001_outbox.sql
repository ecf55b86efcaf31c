-- Times are microseconds since 1970 in UTC.
CREATE TABLE lucius_outbox_messages (
    -- Order of commits: SQLite has one writer at a time.
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    namespace TEXT NOT NULL,
    topic TEXT NOT NULL,
    tenant_id TEXT,
    dedupe_key TEXT,
    ordering_key TEXT,
    payload TEXT NOT NULL,
    -- Not as IN, for which SQLite builds a table at every insert and update.
    status TEXT NOT NULL DEFAULT 'pending' CHECK (
        status = 'pending' OR status = 'processing' OR status = 'delivered' OR status = 'dead'
    ),
    -- A due row that was found behind an earlier live row of its ordering key; it leaves the index
    -- of due rows until that one has ended. See docs/explanation/outbox.md.
    waiting INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    reclaims INTEGER NOT NULL DEFAULT 0,
    claim_no INTEGER,
    next_attempt_at INTEGER NOT NULL,
    locked_by TEXT,
    locked_until INTEGER,
    last_error TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK ((status = 'processing') = (locked_by IS NOT NULL)),
    CHECK ((locked_by IS NULL) = (locked_until IS NULL))
);

CREATE UNIQUE INDEX lucius_outbox_dedupe ON lucius_outbox_messages (namespace, topic, dedupe_key)
    WHERE dedupe_key IS NOT NULL;

-- Claims look at rows of one status only, so delivered rows are in none of their indexes.
CREATE INDEX lucius_outbox_due ON lucius_outbox_messages (namespace, next_attempt_at, seq)
    WHERE status = 'pending' AND waiting = 0;
CREATE INDEX lucius_outbox_leases ON lucius_outbox_messages (namespace, locked_until)
    WHERE status = 'processing';
CREATE INDEX lucius_outbox_keys ON lucius_outbox_messages (namespace, topic, ordering_key, seq)
    WHERE ordering_key IS NOT NULL AND status IN ('pending', 'processing');
CREATE INDEX lucius_outbox_delivered ON lucius_outbox_messages (namespace, updated_at)
    WHERE status = 'delivered';
CREATE INDEX lucius_outbox_dead ON lucius_outbox_messages (namespace, seq)
    WHERE status = 'dead';

CREATE TABLE lucius_outbox_namespaces (
    namespace TEXT PRIMARY KEY,
    replay_forbidden INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE lucius_outbox_replays (
    id INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL,
    namespace TEXT NOT NULL,
    replayed_by TEXT NOT NULL,
    reason TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    last_error TEXT,
    replayed_at INTEGER NOT NULL
);
CREATE INDEX lucius_outbox_replays_newest ON lucius_outbox_replays (namespace, id);
