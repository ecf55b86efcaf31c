"""Sweepers: what happens to a job when nothing happens to it.

Each looks in an index for jobs that may need it, reads them, and lets `decide` say what their state
means now. An index may name a job too early or for no reason; then nothing is done. So a sweeper
can never overwrite what a reply has done meanwhile, and any number of replicas may run at once: of
two that see the same deadline, one commits and the other finds nothing left to do.
"""
