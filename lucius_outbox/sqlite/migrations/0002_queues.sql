-- None for messages without a queue, which stay out of the index below. A release that knows no
-- queues leaves the column out, and its rows are in the queue '', where they can be found.
ALTER TABLE lucius_outbox_messages ADD COLUMN queue TEXT DEFAULT '';

CREATE INDEX lucius_outbox_queues ON lucius_outbox_messages (namespace, queue, next_attempt_at, seq)
    WHERE queue IS NOT NULL AND status = 'pending' AND waiting = 0;
