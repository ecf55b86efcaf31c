-- Whether the next attempt of a step waits for its turn, or has it.
ALTER TABLE lucius_ledger_steps ADD COLUMN turn TEXT;
