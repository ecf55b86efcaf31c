"""A control plane under test: engine, dispatcher and sweepers on one store and one bus, with a
clock that tests move and services that tests play."""

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Self, cast

from lucius_bus.memory import MemoryBus
from lucius_bus.port import Bus, BusMessage, Delivery
from lucius_bus.topology import dead_letters_of, lane_topology
from lucius_contract.audit import EventType
from lucius_contract.envelope import Envelope
from lucius_contract.messages import (
    Ack,
    Directive,
    Heartbeat,
    Message,
    Progress,
    Reply,
    Result,
    ResultStatus,
    StepError,
    bus_message_id,
    parse_directive,
)
from lucius_contract.routing import (
    LANES,
    REPLY_SUBSCRIPTION,
    directive_topic,
    lane_of,
    reply_topic,
)
from lucius_contract.states import JobState, StepState
from lucius_orchestrator.adapters.registry import YamlRegistry
from lucius_orchestrator.domain.aggregate import Engine, Job, Step, StepPolicy
from lucius_orchestrator.domain.decision import AuditEvent, ReplyAnswer
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.engine.engine import EngineSettings, LedgerEngine, World
from lucius_orchestrator.engine.planning import PlanSettings, Request, plan_request
from lucius_orchestrator.engine.requests import JobRequest
from lucius_orchestrator.engine.steering import Steering
from lucius_orchestrator.engine.telemetry import Telemetry
from lucius_orchestrator.engine.traffic import Traffic
from lucius_orchestrator.outbox.dispatcher import Dispatcher, DispatcherSettings
from lucius_orchestrator.outbox.publishing import ArtifactToken, ReplyAddress
from lucius_orchestrator.ports.ledger import (
    DeadLetterRow,
    DirectiveStatus,
    Ledger,
    LedgerUnavailable,
    Stored,
)
from lucius_orchestrator.ports.registry import (
    GlobalConfig,
    ProtocolDefinition,
    ProtocolStep,
    Snapshot,
    TenantConfig,
)
from lucius_orchestrator.sweepers.runner import all_sweepers
from lucius_orchestrator.sweepers.sweeper import Sweeper, SweepSettings
from tests.ledger.backends import Backend
from tests.ledger.view import letters
from tests.runner.deadlines import DEADLINE

TENANT = "acme"
TOPIC = directive_topic(lane_of(TENANT))
REPLIES = reply_topic(lane_of(TENANT))
AT_ONCE = timedelta(0)
SKEW = timedelta(seconds=2)
WIDE = Limits(1000, 1000)
"""A window in which everything is published at once, for tests of other things."""
MOMENT = timedelta(microseconds=1)
SECRET = "launch-codes"  # noqa: S105 - stands for what payloads hold
MANY = 1000
SHIPPED = YamlRegistry(None).load()
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
PROMPTS = {"prompt_set": [{"name": "total", "prompt": SECRET, "output": "text"}]}
OCR = {
    "tenant_id": TENANT,
    "request_type": "OCR",
    "input_ref": {"uri": "az://inbox/a.pdf"},
    "output_ref": {"uri": "az://outbox/a.json"},
    "payload": {"languages": [SECRET]},
    "schema_version": "1",
}
PIPELINE: dict[str, Any] = {
    "request_type": "OCR_EMBEDDING_SIS",
    "payload": {"ocr": {"dpi": 300}, "sis": PROMPTS},
}
ARTIFACT = {
    "name": "output.txt",
    "uri": "az://workspace/acme/output.txt",
    "sha256": "ab" * 32,
    "size": 5,
    "media_type": "text/plain",
}


def request(
    snapshot: Snapshot = SHIPPED, engine: Engine = Engine.LEDGER, **members: Any
) -> Request:
    return plan_request(
        Envelope.read(OCR | members),
        snapshot,
        PlanSettings("az://workspace", engine=engine),
        correlation_id="c-0",
        traceparent=TRACE,
    )


def configured(
    tenant: TenantConfig | None = None, defaults: GlobalConfig | None = None
) -> Snapshot:
    """The shipped protocols, with other configuration."""
    tenants = {TENANT: tenant} if tenant else {}
    found = SHIPPED.protocols, SHIPPED.by_request_type
    return Snapshot(*found, tenants, defaults or GlobalConfig())


def one_step(**policy: Any) -> Snapshot:
    """The request type OCR as one step with a policy of its own."""
    step = ProtocolStep("OCR", "ocr", {"type": "object"}, StepPolicy(**policy))
    protocol = ProtocolDefinition("short", "7", "OCR", (), (step,))
    return Snapshot({"short": protocol}, {"OCR": protocol}, {}, GlobalConfig())


def ack(attempt: Message) -> Ack:
    return Ack(**_identity(attempt))


def heartbeat(attempt: Message, fraction: float | None = None) -> Heartbeat:
    progress = None if fraction is None else Progress(fraction=fraction)
    return Heartbeat(**_identity(attempt), progress=progress)


def result(
    attempt: Message, status: ResultStatus = ResultStatus.SUCCEEDED, **members: Any
) -> Result:
    if status is not ResultStatus.SUCCEEDED:
        members = {"error": StepError(code="ocr.BROKEN", message="it broke"), **members}
    return Result(**_identity(attempt), status=status, **members)


def _identity(attempt: Message) -> dict[str, Any]:
    return {
        "job_id": attempt.job_id,
        "step_id": attempt.step_id,
        "tenant_id": attempt.tenant_id,
        "attempt_no": attempt.attempt_no,
        "lease_id": attempt.lease_id,
        "timestamp": datetime.fromisoformat("2026-01-27T10:00:00Z"),
        "correlation_id": "c-0",
    }


def on_the_bus(reply: Reply, **members: Any) -> BusMessage:
    """As a service publishes it."""
    return BusMessage(bus_message_id(reply), reply.model_copy(update=members).to_bytes())


class Recorder:
    """Metrics as they were told."""

    def __init__(self) -> None:
        self.counts = Counter[tuple[str, tuple[tuple[str, str], ...]]]()
        self.observed: list[tuple[str, dict[str, str], float]] = []

    def increment(self, name: str, amount: int, **labels: str) -> None:
        self.counts[name, tuple(sorted(labels.items()))] += amount

    def observe(self, name: str, values: Sequence[float], **labels: str) -> None:
        self.observed += [(name, labels, value) for value in values]

    def set(self, name: str, value: float, **labels: str) -> None:
        raise AssertionError(f"a gauge, which the engine has none of: {name} {labels} {value}")

    def count(self, name: str, **labels: str) -> int:
        """Over all labels that are not named."""
        return sum(
            amount
            for (counted, found), amount in self.counts.items()
            if counted == name and labels.items() <= dict(found).items()
        )

    def labels(self) -> Iterator[tuple[str, frozenset[str]]]:
        """What was told, by the names of its labels."""
        for name, found in self.counts:
            yield name, frozenset(dict(found))
        for name, given, _ in self.observed:
            yield name, frozenset(given)


async def turns(count: int = 20) -> None:
    """Let every task run until it waits for something."""
    for _ in range(count):
        await asyncio.sleep(0)


Hook = Callable[..., Awaitable[None]]


class Detour:
    """Stands before a ledger or a bus and lets every verb pass: tests can act before and after one,
    let it fail or answer something else, and wait until it was called."""

    def __init__(self, target: object) -> None:
        self._target = target
        self.before: dict[str, Hook] = {}
        self.after: dict[str, Hook] = {}
        self.answers: dict[str, Any] = {}
        self.claims_are_blind = False
        """What a ledger has seen of a job when it was claimed is kept from the dispatcher."""
        self.calls = Counter[str]()
        self._errors: dict[str, Exception] = {}
        self._changed = asyncio.Condition()

    def fail(self, *verbs: str, error: Exception | None = None) -> None:
        """These verbs do nothing but fail, until `heal`."""
        for verb in verbs:
            self._errors[verb] = error or LedgerUnavailable("the ledger is away")

    def heal(self) -> None:
        self._errors.clear()

    async def called(self, *verbs: str, times: int = 1) -> None:
        """Wait until the verbs were answered that often in all, well or not."""
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(lambda: sum(self.calls[verb] for verb in verbs) >= times)

    def adopt(self, *arguments: Any) -> Callable[[], None]:
        end: Callable[[], None] = self._target.adopt(*arguments)  # type: ignore[attr-defined]
        return end

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        """Both ways to claim are known as `claim`."""
        known_as = "claim" if verb == "claim_in_turn" else verb

        async def call(*arguments: Any) -> Any:
            try:
                return await self._call(known_as, getattr(self._target, verb), *arguments)
            finally:
                self.calls[known_as] += 1
                async with self._changed:
                    self._changed.notify_all()

        return call

    async def _call(self, verb: str, target: Callable[..., Awaitable[Any]], *arguments: Any) -> Any:
        if verb in self.before:
            await self.before[verb](*arguments)
        if verb in self._errors:
            raise self._errors[verb]
        if verb in self.answers:
            return self.answers[verb]
        answer = await target(*arguments)
        if verb in self.after:
            await self.after[verb](*arguments)
        if verb == "claim" and self.claims_are_blind:
            return [claim._replace(version=None, stored=None) for claim in answer]
        return answer


AWAY = ("load", "commit", "bury", "create", "find", "claim", "due", "reschedule")
"""Verbs that fail while a ledger is away."""


def once(hook: Hook) -> Hook:
    """The first time only; what the hook itself causes is not another time."""
    times = itertools.count()

    async def first(*arguments: Any) -> None:
        if next(times) == 0:
            await hook(*arguments)

    return first


class Plane:
    """One process of the control plane; `replica` is another one on the same store and bus."""

    drives = Engine.LEDGER
    new_state = "DISPATCHING"
    """What a job is before anything is dispatched."""
    first_number = 1
    steering: Steering | None = None

    def __init__(
        self,
        backend: Backend,
        ledger: Ledger,
        bus: MemoryBus,
        numbers: Iterator[int],
        settings: EngineSettings | None = None,
        limits: Limits = WIDE,
    ) -> None:
        self.backend = backend
        self.clock = backend.clock
        self.ledger = ledger
        self.bus = bus
        self.detour = Detour(ledger)
        self.bus_detour = Detour(bus)
        self.metrics = Recorder()
        self.telemetry = Telemetry(self.metrics)
        self._numbers = numbers
        self.chances: Iterator[float] = itertools.repeat(0.5)
        world = World(
            self.clock,
            lambda size: next(numbers).to_bytes(size),
            lambda: next(self.chances),
        )
        seen = cast(Ledger, self.detour)
        self.traffic = Traffic(self.clock, limits)
        self.engine = LedgerEngine(seen, world, self.telemetry, settings, traffic=self.traffic)
        self.dispatcher = self.another_dispatcher()

    @classmethod
    def new(cls, backend: Backend, bus: MemoryBus, limits: Limits = WIDE) -> Self:
        bus.apply(lane_topology(["ocr", "embedding", "sis"]))
        numbers = itertools.count(cls.first_number)
        return cls(backend, backend.ledger, bus, numbers, limits=limits)

    async def replica(
        self, settings: EngineSettings | None = None, limits: Limits = WIDE
    ) -> "Plane":
        ledger = await self.backend.reopen()
        return Plane(self.backend, ledger, self.bus, self._numbers, settings, limits)

    def another_dispatcher(
        self,
        settings: DispatcherSettings | None = None,
        reply_address: ReplyAddress | None = None,
        artifact_token: ArtifactToken | None = None,
    ) -> Dispatcher:
        bus = cast(Bus, self.bus_detour)
        return Dispatcher(self.engine, bus, settings, reply_address, artifact_token)

    def later(self, duration: timedelta = AT_ONCE, **parts: float) -> None:
        self.clock.now += duration + timedelta(**parts)
        self.bus.tick()

    async def submit(self, asked: JobRequest | None = None) -> str:
        return (await self.engine.submit(asked or request())).job_id

    async def dispatch(self) -> int:
        """Until there is nothing to claim; returns how many directives were claimed."""
        claimed = 0
        while batch := await self.dispatcher.run_once():
            claimed += batch
        return claimed

    async def until(self, happened: Callable[[], Awaitable[bool]]) -> None:
        """Let time pass, and all that follows from it happen."""
        async with asyncio.timeout(DEADLINE):
            while not await happened():
                await self.turn()

    async def turn(self) -> None:
        self.later(seconds=1)
        await self.sweep_all()
        await self.dispatch()

    async def deliveries(self, service: str = "ocr") -> list[Delivery]:
        """What the service finds on all lanes."""
        found = []
        for lane in range(LANES):
            found += await self.bus.receive(directive_topic(lane), service, MANY, AT_ONCE)
        for delivery in found:
            await self.bus.complete(delivery)
        return found

    async def directives(self, service: str = "ocr") -> list[Directive]:
        found = await self.deliveries(service)
        return [parse_directive(delivery.message.body) for delivery in found]

    async def directive(self, service: str = "ocr") -> Directive:
        """The only one that the service finds after a dispatch."""
        await self.dispatch()
        (directive,) = await self.directives(service)
        return directive

    async def directive_on_the_way(self, service: str = "ocr") -> Directive:
        """The next one of the tenant, for which it is waited."""
        async with asyncio.timeout(DEADLINE):
            (delivery,) = await self.bus.receive(TOPIC, service, 1, timedelta(minutes=10))
        await self.bus.complete(delivery)
        return parse_directive(delivery.message.body)

    async def reply(self, reply: Reply) -> ReplyAnswer:
        return await self.engine.reply(reply)

    async def working(self, asked: JobRequest | None = None, service: str = "ocr") -> Directive:
        """A new job whose service has acknowledged it."""
        await self.submit(asked)
        directive = await self.directive(service)
        await self.reply(ack(directive))
        return directive

    async def failed(self, asked: JobRequest | None = None) -> str:
        """A job that failed for good."""
        directive = await self.working(asked)
        await self.reply(result(directive, ResultStatus.FAILED_FINAL))
        return directive.job_id

    async def succeeded(self, asked: JobRequest | None = None) -> Directive:
        directive = await self.working(asked)
        await self.reply(result(directive))
        return directive

    async def sweep(self, kind: type[Sweeper], settings: SweepSettings | None = None) -> int:
        return await kind(self.engine, settings).run_once()

    async def sweep_all(self) -> dict[str, int]:
        """What each sweeper of jobs did. The second round is for those to whom the first one has
        passed on a job that the index of timers named for another reason."""
        acted = Counter[str]()
        for sweeper in 2 * all_sweepers(self.engine):
            if isinstance(sweeper, Sweeper):
                acted[sweeper.name] += await sweeper.run_once()
        return dict(+acted)

    async def stored(self, job_id: str) -> Stored:
        stored = await self.ledger.load(job_id)
        assert stored is not None, f"there is no {job_id}"
        return stored

    async def job(self, job_id: str) -> Job:
        return (await self.stored(job_id)).aggregate.job

    async def step(self, job_id: str) -> Step:
        """The active one."""
        return (await self.stored(job_id)).aggregate.active

    async def states(self, job_id: str) -> tuple[JobState, StepState]:
        aggregate = (await self.stored(job_id)).aggregate
        return aggregate.job.state, aggregate.active.state

    async def attempt(self, job_id: str) -> Message:
        """The identity of the current attempt, for replies to a directive that nobody saw."""
        step = await self.step(job_id)
        return Message(
            job_id=job_id,
            step_id=step.step_id,
            tenant_id=(await self.job(job_id)).tenant_id,
            attempt_no=step.attempt_no,
            lease_id=step.lease_id or "none",
        )

    async def row(self, job_id: str, attempt_no: int = 1) -> DirectiveStatus | None:
        """How the directive of the first step stands."""
        return await self.ledger.directive(job_id, "step_01", attempt_no)

    async def events(self, job_id: str, *types: EventType) -> list[AuditEvent]:
        found = await self.ledger.events(job_id, limit=MANY)
        return [event for event in found if not types or event.type in types]

    async def letters(self) -> list[DeadLetterRow]:
        return await letters(self.ledger)

    async def bus_letters(self) -> list[BusMessage]:
        """Dead letters among the tenant's replies."""
        found = await self.bus.receive(REPLIES, dead_letters_of(REPLY_SUBSCRIPTION), MANY, AT_ONCE)
        return [delivery.message for delivery in found]
