"""The process: what it is made of, when it is ready, how it ends."""

import asyncio
import os
import signal
import ssl
import traceback
import uuid
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from azure.servicebus.aio import ServiceBusClient

from tests.conform.broken_services.attempts import Attempt
from tests.conform.broken_services.health import Health
from tests.conform.broken_services.lanes import LANES, Delivery, Lane, Room
from tests.conform.broken_services.replies import Replies
from tests.conform.broken_services.store import Store

_DRAIN_SECONDS = 5.0
_ANSWERED_WITHIN = aiohttp.ClientTimeout(total=10)
_NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Who is trusted in TLS, which the suite's bus does not speak. Left to itself the client reads a
long list of authorities for each of the lanes."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What the suite tells a service that it starts."""

    connection: str
    service: str
    root: Path
    health_port: int
    concurrency: int
    store: str
    ack_seconds: float

    @classmethod
    def from_environment(cls, given: Mapping[str, str] = os.environ) -> "Settings":
        return cls(
            given["LUCIUS_SERVICEBUS_CONNECTION"],
            given["LUCIUS_SERVICE"],
            Path(given["LUCIUS_WORKSPACE_ROOT"]),
            int(given["LUCIUS_HEALTH_PORT"]),
            int(given["LUCIUS_CONCURRENCY"]),
            given["LUCIUS_DEDUP_STORE"].removeprefix("sqlite://"),
            float(given["LUCIUS_ACK_SECONDS"]),
        )


class Program(ABC):
    """Made and used in one event loop. `attempts` are those that are being processed, by their
    tasks; `tasks` are all that were begun."""

    lane_type: type[Lane] = Lane
    store_type: type[Store] = Store
    replies_type: type[Replies] = Replies

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.root = settings.root
        self.stopping = asyncio.Event()
        self.slots = asyncio.Semaphore(settings.concurrency)
        self.attempts: dict[asyncio.Task[Any], Attempt] = {}
        self.tasks: set[asyncio.Task[Any]] = set()
        client = self.client()
        self.http = aiohttp.ClientSession(timeout=_ANSWERED_WITHIN)
        self.replies = self.replies_type(client, self.http)
        self.store = self.store_type(settings.store, owner=uuid.uuid4().hex)
        self.room = Room(settings.concurrency)
        self.lanes = [
            self.lane_type(n, client, settings.service, self.take, self.room_of(n))
            for n in range(LANES)
        ]
        self.health = Health({"/healthz/live": self.is_live, "/healthz/ready": self.is_ready})

    async def main(self) -> int:
        """The exit code."""
        self.listen_for_sigterm()
        await self.health.open(self.settings.health_port)
        receiving = [asyncio.create_task(lane.run()) for lane in self.lanes]
        await self.stopping.wait()
        await self.drain()
        for lane in self.lanes:
            lane.end()
        await asyncio.gather(*receiving)
        await self.replies.close()
        await self.http.close()
        self.health.close()
        self.store.close()
        return self.exit_code()

    def client(self) -> ServiceBusClient:
        return ServiceBusClient.from_connection_string(
            self.settings.connection, retry_total=0, ssl_context=_NOBODY
        )

    def listen_for_sigterm(self) -> None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.stopping.set)

    def exit_code(self) -> int:
        return 0

    async def drain(self) -> None:
        """What has not been begun is given back, the rest has some time to end."""
        await asyncio.gather(*(lane.rest() for lane in self.lanes))
        for task, attempt in list(self.attempts.items()):
            if not attempt.is_at_work:
                task.cancel()
        for seconds in (_DRAIN_SECONDS, 1.0):
            if self.tasks:
                _, late = await asyncio.wait(self.tasks, timeout=seconds)
                for task in late:
                    task.cancel()

    def is_live(self) -> bool:
        return True

    def is_ready(self) -> bool:
        return not self.stopping.is_set() and self.has_bus() and self.has_storage()

    def has_bus(self) -> bool:
        return all(lane.is_up for lane in self.lanes)

    def has_storage(self) -> bool:
        return self.root.is_dir() and os.access(self.root, os.W_OK)

    @abstractmethod
    async def serve(self, delivery: Delivery) -> None: ...

    def room_of(self, _lane: int) -> Room:
        """For messages that wait for a slot or have one: no more than there are slots."""
        return self.room

    def take(self, delivery: Delivery) -> None:
        self.begin(self.serve(delivery))

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            traceback.print_exception(error)
