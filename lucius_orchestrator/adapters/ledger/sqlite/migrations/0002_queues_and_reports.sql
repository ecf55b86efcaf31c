CREATE TABLE lucius_ledger_reports (
    process_id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    document TEXT NOT NULL
);

-- Directives that the release before has left behind get the queue that this one would give them.
UPDATE lucius_outbox_messages
SET queue = coalesce(
    json_extract(payload, '$.service') || '/' || json_extract(payload, '$.body.mode') || '/'
        || json_extract(payload, '$.body.tenant_id'),
    ''
)
WHERE namespace = 'lucius.directive' AND (status = 'pending' OR status = 'processing')
  AND queue = '';
