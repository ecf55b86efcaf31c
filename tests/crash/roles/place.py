"""Where everything is that a process of the Temporal engine needs, and how it is run."""

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager
from datetime import timedelta
from typing import NamedTuple, NoReturn
from unittest.mock import patch

from lucius_orchestrator.bootstrap import Part, real_world, running
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.temporal.client import TemporalWorkflows, WorkflowSettings
from lucius_orchestrator.temporal.connection import TemporalOptions
from lucius_orchestrator.temporal.courier import CourierSettings
from tests.crash.offspring import keep_forking
from tests.crash.process import ledger_opener, open_ledger

KEY = "k" * 32
QUICK = timedelta(milliseconds=200)
NO_SKEW = timedelta(0)
# Calls end before the lease on what they deliver: what is sent again and again keeps a server from
# recovering.
_CALL = timedelta(seconds=2)
COURIERS = CourierSettings(lease=timedelta(seconds=5), poll_interval=QUICK, pause=QUICK)

_WATCH_GRACE = timedelta(seconds=4)
"""After which somebody looks whether a workflow that should have acted is still there; a minute in
a deployment."""

_CONSTANTS = (
    "lucius_orchestrator.domain.timers.RECOVERY_GRACE",
    "lucius_orchestrator.temporal.watch.RECOVERY_GRACE",
)


PartsOf = Callable[["Place"], AbstractAsyncContextManager[Sequence[Part]]]


class Place(NamedTuple):
    """As the arguments of a process."""

    backend: str
    ledger: str
    bus: str
    temporal: str
    invoker_port: str
    goal: str

    def options(self) -> TemporalOptions:
        return TemporalOptions(self.temporal)

    def workflows(self) -> TemporalWorkflows:
        settings = WorkflowSettings(skew=NO_SKEW, rpc_timeout=_CALL)
        return TemporalWorkflows(self.options(), settings)

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[LedgerEngine]:
        ledger = await open_ledger(self.backend, self.ledger)
        try:
            yield LedgerEngine(ledger, real_world())
        finally:
            await ledger.close()


def shared_listener(port: int = 0) -> socket.socket:
    """At a port that several processes may hold: the kernel gives each connection to one of those
    that listen, as a load balancer would."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    listener.bind(("127.0.0.1", port))
    return listener


def run(parts_of: PartsOf) -> None:
    place = Place(*sys.argv[1:])
    ledger_opener(place.backend)  # imports what it needs
    keep_forking(lambda: asyncio.run(_live(parts_of, place)))


async def _live(parts_of: PartsOf, place: Place) -> NoReturn:
    with ExitStack() as patched:
        for constant in _CONSTANTS:
            patched.enter_context(patch(constant, _WATCH_GRACE))
        async with parts_of(place) as parts, running(parts):
            print(os.getpid(), flush=True)
            await asyncio.Event().wait()
    raise AssertionError("it waits without end")
