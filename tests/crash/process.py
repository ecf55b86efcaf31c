"""Engine processes that are killed: each submits all jobs, and drives all that it finds."""

import asyncio
import os
import random
import sys
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import NoReturn

from lucius_azure.storage import StorageAccount
from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.bootstrap import Part, real_world, running
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.planning import PlanSettings, Request, plan_request
from lucius_orchestrator.engine.traffic_reports import ReportSettings, TrafficReporter
from lucius_orchestrator.outbox.dispatcher import Dispatcher, DispatcherSettings
from lucius_orchestrator.ports.ledger import Ledger, LedgerUnavailable
from lucius_orchestrator.ports.registry import Snapshot
from lucius_orchestrator.replies.consumer import ConsumerSettings, ReplyConsumer
from lucius_orchestrator.sweepers.runner import SweeperRunner, all_sweepers
from lucius_orchestrator.sweepers.sweeper import SweepSettings
from lucius_settings.secret import Secret
from tests.crash.goal import Goal
from tests.crash.jobs import BACKLOG, backlog, envelope, snapshot
from tests.crash.offspring import keep_forking
from tests.crash.shared_bus import SharedBus

_FULL = (ErrorCode.GLOBAL_SATURATED, ErrorCode.UNAVAILABLE)


def ledger_opener(backend: str) -> Callable[[str], Awaitable[Ledger]]:
    """Import what this ledger needs; return what opens it at an address."""
    if backend == "sqlite":
        from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger

        return SqliteLedger.open
    if backend == "azure_tables":
        from lucius_orchestrator.adapters.ledger.azure_tables import AzureTablesLedger

        grace = timedelta(seconds=2)
        return lambda address: AzureTablesLedger.open(StorageAccount(Secret(address)), grace=grace)
    from lucius_orchestrator.adapters.ledger.postgres import PostgresLedger

    return PostgresLedger.open


async def open_ledger(backend: str, address: str) -> Ledger:
    return await ledger_opener(backend)(address)


async def accepted(engine: LedgerEngine, request: Request) -> bool:
    try:
        await engine.submit(request)
    except LedgerUnavailable:
        return False
    except ContractError as error:
        if error.code not in _FULL:
            raise
        return False
    return True


async def submit_all(
    engine: LedgerEngine,
    goal: Goal,
    protocols: Snapshot,
    drives: Engine = Engine.LEDGER,
    workload: str = "",
) -> NoReturn:
    """Whenever the goal was raised, in an order of its own, so that the processes meet at some and
    not at others."""
    begun = 0
    slots = asyncio.Semaphore(8)

    async def submit(number: int) -> None:
        request = plan_request(
            envelope(number, workload),
            protocols,
            PlanSettings("file:///workspace", engine=drives),
            correlation_id="crash",
            traceparent="00-" + "1" * 32 + "-" + "1" * 16 + "-01",
        )
        async with slots:
            while not await accepted(engine, request):
                await asyncio.sleep(0.3)

    async with asyncio.TaskGroup() as tasks:
        while True:
            order = list(range(begun, goal.jobs()))
            begun += len(order)
            random.shuffle(order)
            for number in order:
                tasks.create_task(submit(number))
            await asyncio.sleep(0.1)


async def main(backend: str, address: str, socket: str, goal: Goal, workload: str = "") -> NoReturn:
    patience = 3 if backend == "azure_tables" else 1
    ledger = await open_ledger(backend, address)
    bus = await SharedBus.connect(socket)
    engine = LedgerEngine(ledger, real_world())
    quick = timedelta(milliseconds=200) * patience
    sweepers = all_sweepers(engine, SweepSettings(skew=timedelta(0)))
    reports = ReportSettings(quick, renewal=2 * quick, life=10 * quick)
    parts: list[Part] = [
        TrafficReporter(engine, dispatches=True, settings=reports),
        ReplyConsumer(engine, bus, ConsumerSettings(wait=timedelta(seconds=1), pause=quick)),
        Dispatcher(
            engine,
            bus,
            DispatcherSettings(
                lease=timedelta(seconds=2) * patience,
                publish_timeout=timedelta(seconds=1) * patience,
                poll_interval=quick,
            ),
        ),
        SweeperRunner(
            sweepers,
            engine.telemetry,
            recovery_grace=quick,
            intervals={sweeper.name: quick for sweeper in sweepers},
        ),
    ]
    async with running(parts):
        print(os.getpid(), flush=True)
        protocols = backlog() if workload == BACKLOG else snapshot(patience)
        await submit_all(engine, goal, protocols, workload=workload)
    raise AssertionError("it submits without end")


if __name__ == "__main__":
    backend, address, socket, goal, *workload = sys.argv[1:]
    ledger_opener(backend)
    keep_forking(lambda: asyncio.run(main(backend, address, socket, Goal(goal), *workload)))
