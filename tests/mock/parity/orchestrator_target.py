"""The orchestrator as a target: its API on a socket, the ledger engine on SQLite, the bus that
`lucius up` has, a clock that tests move, and a front where the mock's faults strike."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta
from http import HTTPStatus
from itertools import count
from pathlib import Path

import aiohttp
from fastapi import FastAPI

from lucius_bus.port import BusMessage, BusUnavailable, Unpublished
from lucius_bus.topology import lane_topology
from lucius_contract.errors import ContractError
from lucius_contract.messages import CallbackUrls, Directive, parse_directive
from lucius_contract.refs import RefPolicy
from lucius_contract.routing import directive_topic, lane_of
from lucius_contract.states import StepState
from lucius_contract.timeouts import JOB_SLA, MAX_CLOCK_SKEW
from lucius_orchestrator.adapters.bus.embedded import EmbeddedBus
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger
from lucius_orchestrator.api import ApiParts, Check, create_app
from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.bootstrap.callbacks import CallbackAddress
from lucius_orchestrator.domain.aggregate import Engine, ReplyVia, Step
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.domain.workflow import Next, TimerName
from lucius_orchestrator.engine.backlogs import Backlogs
from lucius_orchestrator.engine.engine import LedgerEngine, World
from lucius_orchestrator.engine.planning import PlanSettings
from lucius_orchestrator.engine.services import Services
from lucius_orchestrator.engine.steering import Steering
from lucius_orchestrator.engine.traffic import Traffic
from lucius_orchestrator.invoker.desk import DeskSettings, InvokerDesk
from lucius_orchestrator.outbox.dispatcher import Dispatcher
from lucius_orchestrator.outbox.publishing import DirectivePublisher
from lucius_orchestrator.ports.invoker import AttemptName
from lucius_orchestrator.replies.consumer import ReplyConsumer
from lucius_orchestrator.security.callback_tokens import CallbackTokens
from lucius_orchestrator.sweepers.runner import all_sweepers
from lucius_orchestrator.sweepers.sweeper import Sweeper
from orchestrator_mock import Fault, Recording, What
from orchestrator_mock.faults import Faults
from orchestrator_mock.front import Answer, Front
from servicebus_emulator.faults import Fault as BusFault
from servicebus_emulator.faults import FaultKind, Point
from servicebus_emulator.server import Emulator
from tests.api.serving import address, served
from tests.api.stage import NamedCallers, Protocols, no_webhooks
from tests.bus.backends import Clock
from tests.engine.plane import one_step
from tests.mock.parity.bus_replies import BusReplies
from tests.mock.parity.target import (
    ACK_TIMEOUT,
    AT_ONCE,
    HEARTBEAT,
    LEASE,
    MAX_ATTEMPTS,
    SERVICE,
    STEP_TYPE,
    TENANT,
    Outgoing,
    Seen,
    seen,
)
from tests.runner.deadlines import DEADLINE

_CALLER = {"Authorization": "Bearer root"}
_TOPIC = directive_topic(lane_of(TENANT))
_WAIT = timedelta(seconds=DEADLINE)
_MANY = 100
_ONE_TRY = DeskSettings(tries=1, recovery_grace=timedelta(0))


class Forgetful(EmbeddedBus):
    """Takes what is published, and the answer is lost."""

    async def publish(self, topic: str, messages: Sequence[BusMessage]) -> list[Unpublished]:
        await super().publish(topic, messages)
        lost = BusUnavailable("the answer was lost")
        return [Unpublished(message, lost) for message in messages]


class Forwarding:
    """A judge that asks the orchestrator."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def __call__(
        self, type: What, token: str | None, _headers: Mapping[str, str], raw: bytes, /
    ) -> Answer:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        path = f"/v1/callbacks/{type.lower()}"
        async with self._http.post(path, data=raw, headers=headers) as answer:
            return Answer(answer.status, await answer.json(content_type=None), answer.content_type)


class OrchestratorTarget:
    """`http` is for the API, which `parts` and `served` make."""

    def __init__(
        self, clock: Clock, engine: LedgerEngine, registry: Protocols, http: aiohttp.ClientSession
    ) -> None:
        self._clock = clock
        self._engine = engine
        self._registry = registry
        self._http = http
        self._numbers = count()
        self._faults = Faults()
        self.recording = Recording()
        self.front = Front(Forwarding(http), self._faults, self.recording)
        self._replies = BusReplies(engine.ledger, self.recording)
        self._emulator = Emulator(observe=self._replies)
        self._bus_port = 0
        self._is_bus_away = False
        self._messages: dict[str, BusMessage] = {}
        self.bus = EmbeddedBus(self._emulator)
        self.bus.apply(lane_topology([SERVICE]))

    async def open(self, reply_address: CallbackAddress) -> None:
        forgetful = Forgetful(self._emulator)
        self._dispatchers = {
            True: Dispatcher(self._engine, self.bus, reply_address=reply_address),
            False: Dispatcher(self._engine, forgetful, reply_address=reply_address),
        }
        await self.front.open()
        await self._emulator.start()
        self._bus_port = self._emulator.port

    async def close(self) -> None:
        await self.front.close()
        await self._emulator.stop()

    @property
    def connection_string(self) -> str:
        return self._emulator.connection_string

    def faulty_urls(self, _directive: Directive) -> CallbackUrls:
        return CallbackUrls(**self.front.urls)

    def now(self) -> datetime:
        return self._clock()

    async def submit(
        self, via: ReplyVia = ReplyVia.HTTP, *, lease: timedelta = LEASE, marked: bool = True
    ) -> Directive:
        self._registry.current = one_step(
            ack_timeout=ACK_TIMEOUT,
            lease=lease,
            heartbeat=HEARTBEAT,
            max_attempts=MAX_ATTEMPTS,
            backoff=AT_ONCE,
            dispatch_backoff=AT_ONCE,
            reply_via=via,
        )
        number = next(self._numbers)
        envelope = {
            "tenant_id": TENANT,
            "request_type": STEP_TYPE,
            "input_ref": {"uri": f"az://inbox/{number}.pdf"},
            "output_ref": {"uri": f"az://outbox/{number}.txt"},
            "payload": {},
            "schema_version": "1",
        }
        async with self._http.post("/v1/orchestrate", json=envelope, headers=_CALLER) as answer:
            assert answer.status == HTTPStatus.ACCEPTED, await answer.text()
            job_id = (await answer.json())["jobId"]
        await self._dispatch(job_id, marked=marked)
        return await self._directive(job_id)

    async def _dispatch(self, _job_id: str, *, marked: bool = True) -> None:
        await self._dispatchers[marked].run_once()

    def message(self, job_id: str) -> Outgoing:
        message = self._messages[job_id]
        assert message.expires_at is not None
        return Outgoing(
            message.message_id,
            message.partition_key,
            message.properties,
            round((message.expires_at - self.now()).total_seconds()),
            message.body,
        )

    async def expire(self, job_id: str) -> bool:
        step = await self._step(job_id)
        if step.state is StepState.AWAITING_ACK:
            await self._sweep(step.ack_deadline)
        elif step.state is StepState.IN_PROGRESS:
            await self._sweep(step.lease_expires_at)
        return (await self._step(job_id)).state is not step.state

    async def outlive_lease(self, job_id: str) -> None:
        self._pass((await self._step(job_id)).lease_expires_at)

    async def next_attempt(self, job_id: str) -> Directive | None:
        step = await self._step(job_id)
        if step.state is not StepState.FAILED_RETRY:
            return None
        await self._sweep(step.next_attempt_at)
        await self._dispatch(job_id)
        return await self._directive(job_id)

    async def cancel(self, job_id: str) -> bool:
        async with self._http.post(f"/v1/jobs/{job_id}:cancel", headers=_CALLER) as answer:
            return answer.ok

    async def seen(self, job_id: str) -> Seen:
        return seen((await self._engine.read(job_id)).aggregate)

    @property
    def taken(self) -> int:
        return len(self._replies.taken)

    async def expect(self, job_id: str) -> int:
        return await self._replies.expect(job_id)

    async def verdict(self, number: int) -> str:
        return await self._replies.verdict(number)

    async def add_fault(self, fault: Fault) -> None:
        if fault.name == "callback-down":
            await self.front.close()
        elif fault.name == "bus-away":
            self._is_bus_away = True
            await self._emulator.stop()
        elif fault.name == "bus-dropped":
            self._emulator.drop_connections()
        elif fault.name == "reply-dropped":
            drop = BusFault(FaultKind.DROP, point=Point.SEND, count=fault.count or _MANY)
            self._emulator.faults.add(drop)
        else:
            self._faults.add(fault)

    async def clear_faults(self) -> None:
        self._faults.clear()
        self._emulator.faults.clear()
        self.front.release()
        await self.front.open()
        if self._is_bus_away:
            self._is_bus_away = False
            await self._emulator.start(port=self._bus_port)

    async def _sweep(self, deadline: datetime | None) -> None:
        """The second round is for those to whom the first one has passed on the job."""
        self._pass(deadline)
        for sweeper in 2 * all_sweepers(self._engine):
            if isinstance(sweeper, Sweeper):
                await sweeper.run_once()

    def _pass(self, deadline: datetime | None) -> None:
        """It becomes so late that the deadline has passed by everybody's clock."""
        assert deadline is not None
        self._clock.now = max(self._clock.now, deadline + MAX_CLOCK_SKEW)

    async def _step(self, job_id: str) -> Step:
        return (await self._engine.read(job_id)).aggregate.active

    async def _directive(self, job_id: str) -> Directive:
        """What the service finds on the bus; other jobs may be tried again at the same time."""
        while True:
            for delivery in await self.bus.receive(_TOPIC, SERVICE, 1, _WAIT):
                await self.bus.complete(delivery)
                directive = parse_directive(delivery.message.body)
                self._messages[directive.job_id] = delivery.message
                if directive.job_id == job_id:
                    return directive


def _api(
    engine: LedgerEngine,
    registry: Protocols,
    tokens: CallbackTokens,
    drives: Engine,
    steering: Steering,
) -> FastAPI:
    async def ready() -> Sequence[Check]:
        return []

    return create_app(
        ApiParts(
            engine=engine,
            registry=registry,
            authenticator=NamedCallers(),
            tokens=tokens,
            plan=PlanSettings("az://workspace", engine=drives),
            steering=steering,
            refs=RefPolicy(),
            check_webhooks=no_webhooks,
            services=Services(
                engine.traffic, Backlogs(engine.ledger), registry.snapshot, engine.world.clock
            ),
            readiness=ready,
            metrics=lambda: b"",
        )
    )


class InvokerTarget(OrchestratorTarget):
    """The same, with the invoker of the Temporal engine; the test plays the workflow."""

    async def open(self, reply_address: CallbackAddress) -> None:
        await super().open(reply_address)
        self._desks = {
            True: self._desk(self.bus, reply_address),
            False: self._desk(Forgetful(self._emulator), reply_address),
        }

    def _desk(self, bus: EmbeddedBus, reply_address: CallbackAddress) -> InvokerDesk:
        publisher = DirectivePublisher(self._engine, bus, _WAIT, reply_address)
        return InvokerDesk(self._engine, publisher, _ONE_TRY)

    async def command(self, job_id: str, verb: str, by: str | None) -> Next:
        return await self._desks[True].command(job_id, verb, by)

    async def expire(self, job_id: str) -> bool:
        step = await self._step(job_id)
        if step.state is StepState.AWAITING_ACK:
            await self._report(job_id, TimerName.ACK_TIMEOUT, step.ack_deadline)
        elif step.state is StepState.IN_PROGRESS:
            await self._report(job_id, TimerName.LEASE_EXPIRED, step.lease_expires_at)
        return (await self._step(job_id)).state is not step.state

    async def _report(self, job_id: str, name: TimerName, deadline: datetime | None) -> None:
        step = await self._step(job_id)
        self._pass(deadline)
        attempt = AttemptName(job_id, TENANT, step.step_id, step.attempt_no, step.lease_id or "")
        await self._desks[True].report(attempt, name, deadline or self.now())

    async def _sweep(self, deadline: datetime | None) -> None:
        self._pass(deadline)

    async def _dispatch(self, job_id: str, *, marked: bool = True) -> None:
        step, desk = await self._step(job_id), self._desks[marked]
        lease_id = os.urandom(16).hex()
        attempt = AttemptName(job_id, TENANT, step.step_id, step.attempt_no + 1, lease_id)
        await desk.open_attempt(attempt, self.now() + step.policy.dispatch_lease())
        with suppress(ContractError):  # it does not know that the directive is out
            await desk.publish(attempt)


class _Commander:
    """The target, which is made after the API."""

    target: InvokerTarget

    async def command(self, job_id: str, verb: str, by: str | None) -> Next:
        return await self.target.command(job_id, verb, by)


@asynccontextmanager
async def invoker_target(folder: Path) -> AsyncIterator[OrchestratorTarget]:
    async with orchestrator_target(folder, Engine.TEMPORAL) as target:
        yield target


@asynccontextmanager
async def orchestrator_target(
    folder: Path, drives: Engine = Engine.LEDGER
) -> AsyncIterator[OrchestratorTarget]:
    clock, registry, commander = Clock.of_today(), Protocols(), _Commander()
    tokens = CallbackTokens([os.urandom(32)], clock)
    ledger = await SqliteLedger.open(folder / "ledger.db", clock=clock)
    # As the mock does, it sends whatever it is asked to, however much is not acknowledged yet.
    traffic = Traffic(clock, Limits(1000, 1000))
    engine = LedgerEngine(ledger, World(clock, os.urandom, lambda: 0.5), traffic=traffic)
    try:
        async with (
            served(_api(engine, registry, tokens, drives, Steering(engine, commander))) as port,
            aiohttp.ClientSession(address(port)) as http,
        ):
            if drives is Engine.LEDGER:
                target = OrchestratorTarget(clock, engine, registry, http)
            else:
                target = commander.target = InvokerTarget(clock, engine, registry, http)
            await target.open(CallbackAddress(address(port), tokens, lambda: JOB_SLA))
            try:
                async with running([ReplyConsumer(engine, target.bus)]):
                    yield target
            finally:
                await target.close()
            assert target.front.defects == []
    finally:
        await ledger.close()
