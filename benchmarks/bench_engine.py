"""The ledger engine beside a Celery chain: jobs of three steps that do nothing, both durable.

Ours: SQLite with `synchronous = FULL`, the memory bus, a service in the same process that answers
every directive with ACK and RESULT on the reply topic. Requests, which the API has read, are
checked against their protocol, planned and submitted, `IN_FLIGHT` at a time. The peer: see
`benchmarks.celery_peer`. They take turns.
"""

import asyncio
import sys
from statistics import median

from benchmarks import celery_peer
from benchmarks.engine import jobs_per_second
from benchmarks.report import report
from lucius_orchestrator.bootstrap import calm_the_collector

TARGET = 5.0
JOBS, PEER_JOBS, ROUNDS = 2000, 200, 11


def main() -> None:
    calm_the_collector()
    ours, theirs = [], []
    with celery_peer.peer():
        for _ in range(ROUNDS):
            theirs.append(celery_peer.rate(PEER_JOBS))
            measured = asyncio.run(jobs_per_second(JOBS))
            ours.append(measured.jobs_per_second)
            print(f"{ours[-1]:.0f} beside {theirs[-1]:.0f} jobs/s", file=sys.stderr)
    ratios = [own / other for own, other in zip(ours, theirs, strict=True)]
    report(
        "engine",
        median(ratios),
        TARGET,
        jobs_per_second=median(ours),
        celery_jobs_per_second=median(theirs),
        lowest=min(ratios),
        highest=max(ratios),
        cpu_us_per_job=measured.cpu_per_job * 1e6,
    )


if __name__ == "__main__":
    main()
