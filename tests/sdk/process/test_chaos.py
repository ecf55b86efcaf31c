"""Thousands of directives, with all that a bus and a network may do to them."""

import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lucius_bus.port import BusMessage
from lucius_contract.routing import directive_topic
from lucius_sdk.testing.directives import directive_message, make_directive
from servicebus_emulator.faults import Fault, FaultKind, Point
from tests.runner.deadlines import seconds, time_limit
from tests.runner.tiers import by_tier
from tests.runner.workload import Workload
from tests.sdk.process.recorder import Mood, Recorder, open_recorder
from tests.sdk.process.yard import Yard, open_yard

SERVICE = "worker"
DIRECTIVES = by_tier(1_500, 5_000, 10_000)
WAVE = 500
DUPLICATES = 150
"""Of a wave."""
LOST_SETTLEMENTS = 10
"""In a wave."""
TENANTS = 40
DEADLINE = seconds(200)


class Flapping:
    """Now and then away for a hundred requests, and never quite reliable."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._left = 500
        self._is_away = False

    def __call__(self) -> Mood:
        self._left -= 1
        if self._left == 0:
            self._is_away = not self._is_away
            self._left = 100 if self._is_away else 2_000
        if self._is_away:
            return Mood.BUSY
        lot = self._chance.random()
        if lot < 0.02:
            return Mood.CUT
        return Mood.MUTE if lot < 0.04 else Mood.WELL


@time_limit(280)
async def test_each_of_thousands_of_directives_is_run_once_and_has_one_result(
    tmp_path: Path,
) -> None:
    chance = random.Random(7)
    lock = timedelta(seconds=10)
    async with (
        open_yard(tmp_path, [SERVICE], lock) as yard,
        open_recorder(Flapping(chance)) as recorder,
        yard.service(SERVICE, LUCIUS_CONCURRENCY="64", LUCIUS_LOG_LEVEL="ERROR") as running,
    ):
        workload, sent = Workload(DIRECTIVES), 0
        while workload.wants_more(sent):
            fault = Fault(FaultKind.LOSE_SETTLEMENT, point=Point.SETTLE, count=LOST_SETTLEMENTS)
            yard.emulator.faults.add(fault)
            await send_all(yard, recorder, chance, range(sent, sent + WAVE))
            await recorder.until(lambda least=sent: len(recorder.results) >= least, DEADLINE)  # type: ignore[misc]
            sent += WAVE
        await recorder.until(lambda: len(recorder.results) == sent, DEADLINE)
        await yard.empty(SERVICE, DEADLINE)
        assert await running.stop() == 0
        assert not yard.emulator.faults.active(), "all settlements were lost that should be"
    assert len(recorder.results) == sent
    assert all(len(set(bodies)) == 1 for bodies in recorder.results.values())
    assert set(yard.runs.values()) == {1}
    assert len(yard.runs) == sent
    assert sum(map(len, recorder.results.values())) > sent, "some answers were lost"


async def send_all(
    yard: Yard, recorder: Recorder, chance: random.Random, numbers: Iterable[int]
) -> None:
    """In any order, and many of them twice."""
    messages = [message(yard, recorder, number) for number in numbers]
    messages += chance.sample(messages, DUPLICATES)
    chance.shuffle(messages)
    for topic, one in messages:
        assert not await yard.bus.publish(topic, [one])


def message(yard: Yard, recorder: Recorder, number: int) -> tuple[str, BusMessage]:
    directive = make_directive(
        datetime.now(UTC),
        yard.workspace.as_uri(),
        jobId=f"job_{number}",
        tenant_id=f"tenant-{number % TENANTS}",
        step_type="NOTE",
        **recorder.callbacks,
    )
    return directive_topic(directive.lane), directive_message(directive, SERVICE)
