"""What the orchestrator decides, with nothing around it: no I/O, no clock, no randomness.

The ledger holds an *aggregate*: one job and its ordered steps. Something happens to it: a request
was submitted, a directive was published, a service replied, a deadline passed, an operator gave a
command. `decide(aggregate, event, now, fresh)` answers what that changes, as *differences*: fields
of the job, fields of steps, outbox rows to add or to mark, audit events, dead letters, and for a
reply the verdict. The caller commits all of it in one transaction, or none of it; on a version
conflict it reads again and decides again. `apply(aggregate, decision)` gives the aggregate that the
ledger then holds.

Why differences: a job passes through some ten decisions, each of which touches a handful of some
sixty fields. Rebuilding whole rows would cost more than deciding.

Three rules carry the guarantees:

*   A reply counts only for the current attempt and its lease, and at most one RESULT is ever
    applied for an attempt. Its digest stays in the step's history, so the same RESULT sent again
    is recognised for ever, and another one is refused, whatever happened since.
*   A deadline is not a fact until it is committed. A timer event names the attempt, the lease and
    the deadline that it was set for; if any of them moved, or the time has not come, nothing
    happens. A reply that arrives late but before the expiry was committed still counts.
*   Every hop of every state is looked up in the contract's transition tables. A hop that stands in
    none is refused with its reason and recorded.
"""
