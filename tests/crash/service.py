"""A service that answers over the bus, twice and late and out of order."""

import asyncio
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pydantic_core

from lucius_bus.memory import MemoryBus
from lucius_bus.port import BusMessage, Delivery, LockLost
from lucius_contract.messages import Outcome
from lucius_contract.routing import LANES, directive_topic, reply_topic
from tests.crash.jobs import SERVICES, outcome

_IDENTITY = ("jobId", "stepId", "tenant_id", "attempt_no", "lease_id", "correlation_id")

Made = tuple[str, str, int]
"""An attempt: job, step, number."""


@dataclass
class UnreliableService:
    """`directives` counts the deliveries of each attempt, by job, step and attempt; `names` are the
    message ids and leases under which it came; `jobs` are those that it has seen."""

    bus: MemoryBus
    chance: Random
    directives: dict[Made, int] = field(default_factory=lambda: defaultdict(int))
    names: dict[Made, set[tuple[str, str]]] = field(default_factory=lambda: defaultdict(set))
    jobs: set[str] = field(default_factory=set)
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for service in SERVICES:
                for lane in range(LANES):
                    tasks.create_task(self._serve(tasks, service, lane))

    async def has_seen(self, jobs: int) -> None:
        """Wait until it was sent directives of so many jobs."""
        while len(self.jobs) < jobs:
            self._came.clear()
            await self._came.wait()

    async def _serve(self, tasks: asyncio.TaskGroup, service: str, lane: int) -> None:
        while True:
            deliveries = await self.bus.receive(
                directive_topic(lane), service, 50, timedelta(minutes=5)
            )
            for delivery in deliveries:
                tasks.create_task(self._work(lane, delivery))

    async def _work(self, lane: int, delivery: Delivery) -> None:
        directive = pydantic_core.from_json(delivery.message.body)
        attempt = (directive["jobId"], directive["stepId"], directive["attempt_no"])
        self.directives[attempt] += 1
        self.jobs.add(directive["jobId"])
        self._came.set()
        self.names[attempt].add((delivery.message.message_id, directive["lease_id"]))
        replies = [ack_of(directive), result_of(directive, self._number(directive))]
        if self.chance.random() < 0.3:
            replies += replies[self.chance.randrange(2) :]
        if self.chance.random() < 0.2:
            self.chance.shuffle(replies)
        for reply in replies:
            if self.chance.random() < 0.2:
                await asyncio.sleep(self.chance.random() * 0.5)
            await self.bus.publish(reply_topic(lane), [reply])
        with suppress(LockLost):  # this loop stood still: the message comes again, and is answered
            await self.bus.complete(delivery)

    def _number(self, directive: Any) -> int:
        return int(directive["input_ref"]["uri"].rpartition("/")[2])


def ack_of(directive: Any, **said: Any) -> BusMessage:
    return _reply(directive, "ACK", {"status": "ACKED", **said})


def result_of(directive: Any, number: int = 0) -> BusMessage:
    """As is scripted for the job of this number; number 0 always succeeds."""
    status = outcome(number, directive["step_type"], directive["attempt_no"])
    said: dict[str, Any] = {"status": status}
    if status is not Outcome.SUCCEEDED:
        said["error"] = {"code": "FIRST_BROKE", "message": "as scripted"}
    return _reply(directive, "RESULT", said)


def _reply(directive: Any, kind: str, said: dict[str, Any]) -> BusMessage:
    identity = {name: directive[name] for name in _IDENTITY}
    # One timestamp per attempt: a RESULT that is sent again says the same.
    at = datetime.fromtimestamp(directive["attempt_no"], UTC).isoformat()
    body = {"type": kind, "timestamp": at, **identity, **said}
    return BusMessage(f"{directive['jobId']}.{kind}", pydantic_core.to_json(body))
