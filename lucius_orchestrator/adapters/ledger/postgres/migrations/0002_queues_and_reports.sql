CREATE TABLE lucius_ledger_reports (
    process_id text COLLATE "C" PRIMARY KEY,
    at timestamptz NOT NULL,
    document text NOT NULL
);

-- Directives that the release before has left behind get the queue that this one would give them.
-- The body is JSON as text. One with a NUL, of which PostgreSQL takes no member, stays without.
UPDATE lucius_outbox_messages
SET queue = coalesce(CASE WHEN strpos(payload ->> 'body', '\u0000') = 0 THEN
    (payload ->> 'service') || '/' || ((payload ->> 'body')::json ->> 'mode') || '/'
        || ((payload ->> 'body')::json ->> 'tenant_id')
END, '')
WHERE namespace = 'lucius.directive' AND status IN ('pending', 'processing') AND queue = '';
