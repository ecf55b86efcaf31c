"""The ledger on a store that can write the rows of one partition together, and nothing more.

A job with all its rows is one partition, so what happens to a job is one batch, on the ETag of its
JOB row. All else that a ledger has to know lies in other partitions: which job an idempotency entry
stands for, which directives are to be published, when a job needs attention, how many are in
flight. No batch can reach both. What keeps them together is an order of writing:

1.  Before a batch, the rows that will lead to what it writes. A crash now leaves a row that leads
    to nothing; whoever follows it looks at the job and finds that out.
2.  The batch. From here on all of it counts, or nothing.
3.  After the batch, the deletion of rows that lead to what is no more. A crash leaves one of them,
    which is found out in the same way.

So an index may name too much, or too early, never too little or too late. What is left over is
mended by readers who meet it and by `repair`, and the one hard question is when a row that leads to
nothing may be deleted: its writer may only be slow, and would then commit something that nothing
leads to. Hence every such row carries the ETag on which its commit builds. While the job has that
ETag the commit can still come; whoever wants to delete the row first moves the ETag, by a write
that changes nothing, or puts a tombstone where a job was to be created. Then the slow writer fails,
and tries again from what is stored. No step waits for a clock to be sure of anything.

    store       what a table store offers, and one in memory that can be stopped between two calls
    keys        names of rows, in the characters that are allowed
    partition   the rows of a job; fences and tombstones
    indexes     the rows that lead to it; which of them stand
    entries     idempotency entries            slots       jobs in flight
    creation    a new job                      commits     a job that moves on
    directives  what is to be sent             leading     who claims in which lane
    lanes       rows of the index, in order    holds       claims on them
    queues      which directives are next      reports     what processes tell each other
    letters     dead letters                   listing     pages of jobs
    ending      what a job owes when it ends   retention   jobs that go
    webhooks    what its addresses are told    repair      what crashes left
    webhook_store   the same, for the outbox's dispatcher
    ledger      the verbs of the port

Cost, in calls of the store, when nobody interferes: a creation takes eight; a commit that only
moves a step takes one, the last five, and one more for each row that it marks or brings, and if its
end is to be told. A timer that moves to an earlier moment costs two more. A row that is adopted is
not claimed by any call. An INVOCATION is taken with two calls where it was committed, with three
elsewhere. What a workflow was told is ended with one call, which rows of one lane share.
"""
