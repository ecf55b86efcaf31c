"""The engine on Temporal: one workflow per job, which keeps the time and asks the invoker.

A workflow decides nothing about a job. It obeys what comes next, as the invoker said last: open an
attempt, have its directive published, wait for a signal or a deadline, end. Whatever the protocol,
it is the same loop; a new protocol or another rule of retries needs no other workflow.

Two ways lead to a workflow: answers to what it asked, and signals about what it did not ask for.
Both carry what comes next in the same form, with its place in the order of commits. The later one
counts, so that signals may come twice, late, or in any order.

Nothing here writes the ledger.
"""
