"""What a job costs in calls of the tables, which an account is billed by.

Counted on tables in memory: the ledger makes the same calls of Azure's, as the last test shows.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import timedelta

import pytest

from lucius_azure.storage import StorageAccount, open_tables
from lucius_bus.memory import MemoryBus
from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.ledger.azure_tables import TableNames
from lucius_orchestrator.adapters.ledger.azure_tables.tables import AzureTables
from lucius_orchestrator.adapters.ledger.tables.leading import LEASES
from lucius_orchestrator.adapters.ledger.tables.ledger import TableLedger
from lucius_orchestrator.adapters.ledger.tables.reports import REPORTS
from lucius_orchestrator.adapters.ledger.tables.store import Call, MemoryTables
from lucius_orchestrator.bootstrap.parts import running
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.outbox.dispatcher import DispatcherSettings
from lucius_orchestrator.ports.ledger import Claim, Ledger, Queue, TrafficReport
from lucius_settings.secret import Secret
from tests.azure_proxy import proxy_to
from tests.azurite import Azurite
from tests.engine.plane import PIPELINE, Plane, ack, request, result
from tests.ledger.azure_stage import HookedTables
from tests.ledger.backends import START, Backend, Clock

SERVICES = ("ocr", "embedding", "sis")
ALONE = 28
"""With one process that does all."""

APART = 37
"""With one process for the API and the replies, and another for the rest."""


class CountedBackend(Backend):
    """A store whose calls are counted, but for those of a dispatcher that looks for directives, and
    says that it does, and those about reports: they come at an interval, however many jobs there
    are."""

    def __init__(self, tables: MemoryTables | HookedTables) -> None:
        super().__init__(Clock())
        self._tables = tables
        self.calls: Counter[tuple[str, str]] = Counter()
        self.looks = 0
        self.reported = 0

    @property
    def spent(self) -> int:
        return self.calls.total()

    async def _open(self) -> Ledger:
        return TableLedger(self._tables.shared(self._count), clock=self.clock)

    async def _count(self, call: Call) -> None:
        self.looks += call.verb == "scan"
        self.reported += call.partition == REPORTS
        if call.verb != "scan" and call.partition not in (LEASES, REPORTS):
            self.calls[call.verb, call.table] += 1


@pytest.fixture
async def backend() -> AsyncIterator[CountedBackend]:
    backend = CountedBackend(MemoryTables())
    await backend.start()
    yield backend
    await backend.stop()


@pytest.fixture
async def bus(backend: CountedBackend) -> AsyncIterator[MemoryBus]:
    bus = MemoryBus(backend.clock)
    yield bus
    await bus.close()


class Everything:
    """Turns that leave nothing waiting."""

    def room(self, service: str) -> int:  # noqa: ARG002
        return 100

    def last(self, service: str, mode: Mode) -> Queue | None:  # noqa: ARG002
        return None

    def allot(self, service: str, waiting: Sequence[Queue]) -> Mapping[Queue, int]:
        return dict.fromkeys(waiting, self.room(service) // len(waiting))


def claim_in_turn(plane: Plane) -> None:
    """Let the dispatchers of the process claim so."""

    async def claim(
        _kind: OutboxKind, _size: int, lease: timedelta, lanes: Collection[int]
    ) -> list[Claim]:
        return await plane.ledger.claim_in_turn(Everything(), lease, lanes)

    plane.detour.__dict__["claim"] = claim


class Alone:
    """One process, whose dispatcher is running."""

    def __init__(self, backend: CountedBackend, bus: MemoryBus) -> None:
        self._backend = backend
        self.plane = Plane.new(backend, bus)
        self.parts = [self.plane.dispatcher]

    async def cost_of_a_job(self, number: int) -> int:
        before = self._backend.spent
        await self.plane.submit(request(idempotency_key=f"k-{number}", **PIPELINE))
        for service in SERVICES:
            commits = self.plane.detour.calls["commit"]
            directive = await self.plane.directive_on_the_way(service)
            await self.plane.detour.called("commit", times=commits + 1)  # it is marked as sent
            await self.plane.reply(ack(directive))
            await self.plane.reply(result(directive))
        return self._backend.spent - before


async def test_a_job_costs_thirty_calls_at_most_with_one_process(
    backend: CountedBackend, bus: MemoryBus
) -> None:
    alone = Alone(backend, bus)
    async with running(alone.parts):
        first = await alone.cost_of_a_job(0)
        assert first == ALONE + 2  # what is in flight is read once
        assert [await alone.cost_of_a_job(number) for number in (1, 2)] == [ALONE, ALONE]
    assert ALONE <= 30


async def test_the_cost_does_not_grow_with_the_tables(
    backend: CountedBackend, bus: MemoryBus
) -> None:
    alone = Alone(backend, bus)
    async with running(alone.parts):
        costs = {await alone.cost_of_a_job(number) for number in range(300)}
    assert costs == {ALONE, ALONE + 2}


async def test_a_job_costs_forty_calls_at_most_with_several_processes(
    backend: CountedBackend, bus: MemoryBus
) -> None:
    api = Plane.new(backend, bus)
    reconciler = await api.replica()
    api.engine.dispatches = False  # as in a process without a dispatcher
    costs = []
    for number in range(3):
        before = backend.spent
        await api.submit(request(idempotency_key=f"k-{number}", **PIPELINE))
        for service in SERVICES:
            await reconciler.dispatch()
            (directive,) = await api.directives(service)
            await api.reply(ack(directive))
            await api.reply(result(directive))
        costs.append(backend.spent - before)
    assert costs[1:] == [APART, APART]
    assert APART <= 40


async def test_directives_that_are_claimed_in_turn_cost_the_same(
    backend: CountedBackend, bus: MemoryBus
) -> None:
    api = Plane.new(backend, bus)
    reconciler = await api.replica()
    api.engine.dispatches = False
    claim_in_turn(reconciler)
    costs = []
    for number in range(3):
        before = backend.spent
        await api.submit(request(idempotency_key=f"k-{number}", **PIPELINE))
        for service in SERVICES:
            await reconciler.dispatch()
            (directive,) = await api.directives(service)
            await api.reply(ack(directive))
            await api.reply(result(directive))
        costs.append(backend.spent - before)
    assert costs[1:] == [APART, APART]


async def test_directives_that_are_adopted_beside_claims_in_turn_cost_the_same(
    backend: CountedBackend, bus: MemoryBus
) -> None:
    alone = Alone(backend, bus)
    claim_in_turn(alone.plane)
    async with running(alone.parts):
        assert [await alone.cost_of_a_job(number) for number in (0, 1)] == [ALONE + 2, ALONE]


async def test_reports_cost_a_call_each(backend: CountedBackend) -> None:
    for number in range(3):
        report = TrafficReport("one", START + timedelta(seconds=number), "{}")
        await backend.ledger.publish_report(report)
        await backend.ledger.reports(START)
    assert backend.spent == 0
    assert backend.reported == (1 + 3) + 3  # the first is found missing


async def test_a_dispatcher_that_is_given_its_directives_does_not_look_for_them(
    backend: CountedBackend, bus: MemoryBus
) -> None:
    alone = Alone(backend, bus)
    slow = alone.plane.another_dispatcher(DispatcherSettings(poll_interval=timedelta(hours=1)))
    async with running([slow]):
        for number in range(3):
            await alone.cost_of_a_job(number)
    assert backend.looks == 1  # when it began


async def test_many_jobs_at_once_cost_less(backend: CountedBackend, bus: MemoryBus) -> None:
    """Who takes slots at the same time takes them together."""
    alone = Alone(backend, bus)
    async with running(alone.parts):
        await alone.cost_of_a_job(0)
        before = backend.calls["batch", "inflight"]
        requests = [request(idempotency_key=f"many-{number}") for number in range(50)]
        await asyncio.gather(*map(alone.plane.submit, requests))
    assert backend.calls["batch", "inflight"] - before < 50


async def test_every_call_is_one_request_to_azure(azure_storage: Azurite) -> None:
    async with proxy_to(azure_storage.table) as proxy:
        connection = proxy.connection(azure_storage)
        opened = open_tables(StorageAccount(Secret(connection)), retry_total=0)
        names = TableNames("calls", "callsentries", "callsindex", "callsflight").physical()
        tables = AzureTables(opened, names)
        await tables.create()
        backend = CountedBackend(HookedTables(tables))
        await backend.start()
        alone = Alone(backend, MemoryBus(backend.clock))
        async with running(alone.parts):
            await alone.cost_of_a_job(0)
            proxy.asked.clear()
            cost = await alone.cost_of_a_job(1)
            asked = [each for each in proxy.asked if "callspending()" not in each.path]
        assert len(asked) == cost == ALONE
        await backend.stop()
        await tables.close()
