"""How much a service can do: not a verdict, a measurement."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from contract_tests.bench import Bench, Sent
from contract_tests.contract import LoadedContract
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import What

_PATIENCE = 600.0


class Load(NamedTuple):
    """`most_at_once` counts jobs between the first read of their input and their RESULT."""

    jobs: int
    via: ReplyVia
    seconds: float
    concurrency: int
    most_at_once: int
    median_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.jobs / self.seconds


async def load(loaded: LoadedContract, jobs: int, via: ReplyVia | None = None) -> Load:
    """Publish that many valid directives at once and wait for their RESULTs."""
    via = via or loaded.contract.reply_via[0]
    with tempfile.TemporaryDirectory(prefix="lucius-load-", ignore_cleanup_errors=True) as name:
        async with Bench(loaded, Path(name), _PATIENCE) as bench:
            await bench.renew()
            await bench.calibrate()
            sent = [bench.send(via, publish=False) for _ in range(jobs)]
            began = bench.mock.recording.now()
            for each in sent:
                bench.mock.publish(each.issued)
            for each in sent:
                await each.succeeded()
            return _measured(bench, sent, via, began)


def _measured(bench: Bench, sent: Sequence[Sent], via: ReplyVia, began: float) -> Load:
    spans, lasted = [], []
    for each in sent:
        published, read, result = (
            each.entries(what)[0].at for what in (What.PUBLISHED, What.READ, What.RESULT)
        )
        spans.append((read, result))
        lasted.append((result - published) * 1000)
    return Load(
        jobs=len(sent),
        via=via,
        seconds=max(end for _, end in spans) - began,
        concurrency=bench.contract.concurrency,
        most_at_once=_most_at_once(spans),
        median_ms=median(lasted),
        p99_ms=quantiles(lasted, n=100)[98] if len(lasted) > 1 else lasted[0],
    )


def _most_at_once(spans: Sequence[tuple[float, float]]) -> int:
    changes = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    now = most = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most
