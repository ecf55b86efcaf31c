"""Many messages, clients that are killed, connections that drop: nothing is lost, nothing is
completed twice."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterable

from servicebus_emulator.broker import QueueSettings
from servicebus_emulator.broker.records import Enqueued, Record, Removed
from servicebus_emulator.faults import Fault, FaultKind, Point
from servicebus_emulator.server import Emulator
from tests.emulator.chaos.crew import Crew
from tests.runner.deadlines import seconds, time_limit
from tests.runner.tiers import by_tier
from tests.runner.workload import Workload

QUEUE = "work"
MESSAGES = by_tier(4_000, 50_000, 100_000)
WAVE = by_tier(2_000, 5_000, 25_000)
"""Messages that a sender is started for."""
SENDERS, RECEIVERS = 2, 3
KILL_EVERY, FAULT_EVERY = by_tier((900, 200), (5_000, 1_000), (7_000, 1_500))
DEADLINE = seconds(240)
SEED = 20_261
FAULTS = [
    (FaultKind.DROP, Point.SEND),
    (FaultKind.DROP, Point.RECEIVE),
    (FaultKind.DROP, Point.SETTLE),
    (FaultKind.LOSE_ANSWER, Point.SEND),
    (FaultKind.LOSE_ANSWER, Point.SETTLE),
    (FaultKind.DUPLICATE, Point.RECEIVE),
]


class Watch:
    """In the place of a journal: sees every change, and acts as the work goes on."""

    wants_compaction = False

    def __init__(self) -> None:
        self.ids: dict[int, str | None] = {}
        self.removed: Counter[int] = Counter()
        self.progress = asyncio.Event()
        self._removed_one = asyncio.Event()

    def load(self) -> Iterable[Record]:
        return ()

    def record(self, record: Record) -> None:
        if isinstance(record, Enqueued):
            self.ids[record.sequence_number] = record.message.message_id
        elif isinstance(record, Removed):
            self.removed[record.sequence_number] += 1
            self.progress.set()
            self._removed_one.set()

    async def until(self, removed: int) -> None:
        """Wait until so many messages were removed."""
        while len(self.removed) < removed:
            self._removed_one.clear()
            await self._removed_one.wait()

    def flush(self) -> None:
        pass

    def compact(self, records: Iterable[Record]) -> None:
        pass


class Senders:
    """They take one wave after the other. `sent` is what they were started for."""

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._workload = Workload(MESSAGES)
        self.sent = 0

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(SENDERS):
                tasks.create_task(self._send())

    async def _send(self) -> None:
        while self._workload.wants_more(self.sent):
            first, self.sent = self.sent, self.sent + WAVE
            await self._crew.run("send", str(first), str(self.sent))


@time_limit(280)
async def test_thousands_of_messages_survive_killed_clients_and_dropped_connections() -> None:
    chance, watch = random.Random(SEED), Watch()
    emulator = Emulator(journal=watch)
    settings = QueueSettings(
        lock_duration=5_000,
        max_delivery_count=1_000,
        requires_duplicate_detection=True,
        duplicate_window=3_600_000,
    )
    emulator.broker.create_queue(QUEUE, settings)
    await emulator.start()
    crew = Crew(emulator.connection_string, QUEUE, chance)
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        background = [tasks.create_task(crew.run("receive")) for _ in range(RECEIVERS)]
        trouble = _make_trouble(emulator, watch, crew, chance)
        background.append(tasks.create_task(trouble))
        senders = Senders(crew)
        await senders.run()
        await watch.until(senders.sent)
        for each in background:
            each.cancel()
    messages = senders.sent
    counts = emulator.broker.queue(QUEUE).counts
    await emulator.stop()
    assert (counts.active, counts.dead, counts.deferred) == (0, 0, 0)
    assert sorted(map(int, filter(None, watch.ids.values()))) == list(range(messages))
    assert set(watch.removed.values()) == {1}
    assert set(crew.done.values()) == {1}
    assert crew.done.keys() <= watch.removed.keys()
    # A kill or a fault may fall between a completion and its answer, and leaves one such at most.
    incidents = messages // FAULT_EVERY + crew.kills + RECEIVERS
    assert len(watch.removed) - len(crew.done) <= incidents
    assert crew.kills >= messages // KILL_EVERY - 1


async def _make_trouble(
    emulator: Emulator, watch: Watch, crew: Crew, chance: random.Random
) -> None:
    next_fault, next_kill = FAULT_EVERY, KILL_EVERY
    while True:
        await watch.progress.wait()
        watch.progress.clear()
        done = len(watch.removed)
        if done >= next_fault:
            kind, point = chance.choice(FAULTS)
            emulator.faults.add(Fault(kind, QUEUE, point))
            next_fault += FAULT_EVERY
        if done >= next_kill:
            crew.kill_one()
            next_kill += KILL_EVERY
