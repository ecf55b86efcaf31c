"""The use cases of the ledger engine: what happens around a decision.

Every use case has the same shape: read the job, let `decide` say what the event means, commit that
on top of the version that was read. A conflict means that somebody else was faster; then it is read
and decided again, so that no decision is ever made on rows that have changed. What this engine
remembers of a job is only a shortcut to reading it: the version check in the ledger finds out when
it is old.
"""
