"""The invoker: writes the jobs that Temporal drives, from their first attempt to their end.

A workflow cannot write a ledger, and services know nothing of Temporal. The invoker stands between:
workflows ask it to open an attempt, to publish its directive, to act on a deadline; services send
it their replies; callers cancel, pause and resume through it. Each of these is decided on the
ledger's row and committed there, as with the other engine, so whoever commits first wins, and the
others are told what comes next.

What it commits and what the workflow learns cannot come apart: an answer can be asked for again,
and what the workflow did not ask for travels in a SIGNAL row of the same commit.
"""
