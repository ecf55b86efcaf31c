"""A test bench: one mock, one service process, and the verbs that scenarios are written in."""

import secrets
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Self, TypeVar

from contract_tests.contract import LoadedContract, Sample
from contract_tests.process import ServiceProcess
from contract_tests.verdicts import HarnessFault, RuleBroken
from lucius_contract.routing import lane_of, normalise
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import Entry, Fault, Issued, Kind, Mock, MockSettings, Order, ServedRef, What

PATIENCE = 45.0
"""Seconds for what must happen but has no time of its own in the contract. Long, since a slow
machine is no broken service."""
_PORTS = range(20_000, 32_000)
_AFTERMATH = 3.0
LOCK_SECONDS = 5.0
"""How long a message stays locked, unless that is renewed."""
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Sent:
    """A directive on its way through the service."""

    bench: "Bench"
    order: Order
    issued: Issued
    refs: tuple[ServedRef, ...]

    @property
    def job_id(self) -> str:
        return self.issued.job_id

    @property
    def runs(self) -> int:
        """How often the work was begun: reads of its first ref, as many to a run as an undisturbed
        one has."""
        return -(-self.refs[0].reads // self.bench.reads_per_run)

    def entries(self, *whats: What) -> list[Entry]:
        """Of this attempt, and reads of the job."""
        found = self.bench.mock.recording.of(self.job_id, *whats)
        return [e for e in found if e.attempt_no in (0, self.issued.attempt_no)]

    def results(self) -> list[Entry]:
        return self.entries(What.RESULT)

    def release(self) -> None:
        for ref in self.refs:
            ref.release()

    async def reading(self) -> None:
        """The work has begun."""
        await self.bench.expect(
            lambda: any(ref.reads for ref in self.refs) or None,
            f"the work of {self.named} was not begun: no ref of its directive was read",
        )

    async def acked(self) -> Entry:
        return await self.bench.expect(
            lambda: next(iter(self.entries(What.ACK)), None),
            f"no ACK of {self.named} came",
        )

    async def result(self) -> Entry:
        """A RESULT that was answered, so that what became of it is known."""
        return await self.bench.expect(
            lambda: next((e for e in self.results() if _is_answered(e)), None),
            f"no RESULT of {self.named} came",
        )

    async def succeeded(self) -> Entry:
        entry = await self.result()
        status = (entry.body or {}).get("status")
        if status != "SUCCEEDED":
            raise RuleBroken(
                f"the valid sample was answered {status}, {(entry.body or {}).get('error')}",
                "The sample in contract.yaml is not valid for the service, or the work failed: see"
                " its log.",
            )
        return entry

    async def settled(self) -> None:
        await self.bench.expect(
            lambda: self.bench.mock.is_settled(self.issued) or None,
            f"the message of {self.named} was not settled",
        )

    @property
    def named(self) -> str:
        return f"job {self.job_id[-6:]}, attempt {self.issued.attempt_no}"


class Bench:
    """Lives as long as a run. A service process is kept from case to case, until one has failed."""

    def __init__(
        self,
        loaded: LoadedContract,
        folder: Path,
        patience: float = PATIENCE,
        watch: Callable[[Entry], None] | None = None,
    ) -> None:
        self.patience = patience
        self._watch = watch
        self.loaded = loaded
        self.contract = loaded.contract
        self.reads_per_run = 1
        self.is_hopeless = False
        self._folder = folder
        self._generation = 0
        self._tenants = 0
        self._process: ServiceProcess | None = None
        self._mock: Mock | None = None

    @property
    def mock(self) -> Mock:
        if self._mock is None:
            raise HarnessFault("the bench is not open")
        return self._mock

    @property
    def service(self) -> ServiceProcess:
        if self._process is None:
            raise HarnessFault("no service was started")
        return self._process

    @property
    def is_open(self) -> bool:
        return self._mock is not None

    def service_log(self) -> str:
        """The end of it."""
        return self._process.log_tail() if self._process is not None else ""

    @property
    def workspace(self) -> Path:
        return self._folder / str(self._generation) / "workspace"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        if self._process is not None:
            await self._process.kill()
        mock, self._mock, self._process = self._mock, None, None
        if mock is not None:
            await mock.__aexit__(None, None, None)

    async def renew(self) -> None:
        """A new mock, a new workspace, a new service that remembers nothing."""
        await self.close()
        self._generation += 1
        self.workspace.mkdir(parents=True)
        self._mock = await Mock(
            MockSettings(self.contract.service, self.workspace, LOCK_SECONDS)
        ).__aenter__()
        self._mock.recording.watch = self._watch
        await self.start()

    async def prepare(self) -> None:
        """A service that is ready."""
        if self._process is None:
            await self.renew()
        elif not self._process.is_running:
            await self.start()

    async def start(self) -> None:
        """The service, once more with what it remembers."""
        self._process = self._instance()
        await self._process.start()

    @asynccontextmanager
    async def second_instance(self) -> AsyncIterator[ServiceProcess]:
        """Beside the first, with the same storage, and with the same store if it can be shared."""
        second = self._instance("state" if self.contract.shares_store else "second-state")
        try:
            await second.start()
            yield second
        finally:
            await second.kill()

    def _instance(self, state: str = "state") -> ServiceProcess:
        environment = self._environment(state)
        return ServiceProcess(self.loaded, environment, self._log, self.mock.recording)

    @property
    def _log(self) -> Path:
        return self._folder / str(self._generation) / "service.log"

    def _environment(self, name: str) -> dict[str, str]:
        state = self._folder / str(self._generation) / name
        state.mkdir(exist_ok=True)
        folder = str(self.loaded.folder)
        places = {"folder": folder, "state": str(state)}
        store = self.contract.dedup_store.replace("{state}", str(state)).replace("{folder}", folder)
        return {
            **places,
            "LUCIUS_SERVICEBUS_CONNECTION": self.mock.connection_string,
            "LUCIUS_SERVICE": self.contract.service,
            "LUCIUS_WORKSPACE_ROOT": str(self.workspace),
            "LUCIUS_ALLOW_PRIVATE_ADDRESSES": "on",  # the mock serves refs on this machine
            "LUCIUS_OUTPUT_ROOTS": str(self.workspace),
            "LUCIUS_HEALTH_PORT": str(_free_port()),
            "LUCIUS_CONCURRENCY": str(self.contract.concurrency),
            "LUCIUS_DEDUP_STORE": store,
            "LUCIUS_ACK_SECONDS": f"{self.contract.ack_seconds:g}",
        }

    async def restart(self) -> None:
        await self.service.kill()
        await self.start()

    def send(
        self,
        via: ReplyVia,
        *,
        kind: Kind = Kind.VALID,
        sample: Sample | None = None,
        held: bool = False,
        copies: int = 1,
        publish: bool = True,
        **changes: Any,
    ) -> Sent:
        """A job of its own tenant. `held`: its refs are not given before `Sent.release`."""
        sample = sample or (self.contract.held_sample if held else self.contract.valid)
        job_id = self.mock.new_job_id()
        order, refs = self._order(job_id, sample, via, held)
        order = replace(order, **changes)
        issued = self.mock.send(order, kind, copies=copies, job_id=job_id, publish=publish)
        return Sent(self, order, issued, refs)

    async def at_work(self, via: ReplyVia, **changes: Any) -> Sent:
        """A directive that is acknowledged and worked on, and cannot end before `Sent.release`."""
        sent = self.send(via, held=True, **changes)
        await self.expect(
            lambda: next((e for e in sent.entries(What.ACK) if is_taken(e)), None),
            f"no ACK of {sent.named} was accepted",
        )
        await sent.reading()
        return sent

    async def given_up(self, via: ReplyVia) -> Sent:
        """An attempt that was done, after the orchestrator had given it up."""
        sent = await self.at_work(via)
        self.mock.expire(sent.job_id)
        sent.release()
        await sent.settled()
        return sent

    def next_attempt(self, sent: Sent, *, held: bool = False) -> Sent:
        """Of the same job, with refs of its own."""
        order, refs = self._order(sent.job_id, self.contract.valid, sent.order.reply_via, held)
        order = replace(
            sent.order, input_ref=order.input_ref, prior_artifacts=order.prior_artifacts
        )
        issued = self.mock.next_attempt(sent.issued, order, publish=False)
        if order.input_ref is not None:
            issued.body["input_ref"] = dict(order.input_ref)
        self.mock.publish(issued)
        return Sent(self, order, issued, refs)

    async def sentinel(self, via: ReplyVia) -> None:
        """A directive that was sent later is answered: what was to come before it has come."""
        sentinel = self.send(via)
        await sentinel.succeeded()
        await sentinel.settled()

    async def nothing_more(self, sent: Sent) -> None:
        """All that the service will ever say of it has been said."""
        await sent.settled()
        await self.sentinel(sent.order.reply_via)

    async def nothing_comes_of(self, sent: Sent) -> None:
        """Let go on what must not be reported any more. Its message may be gone already, so what a
        sentinel proves is not enough: a RESULT is watched for as well."""
        before = len(sent.results())
        sent.release()
        await self.mock.recording.wait(lambda: len(sent.results()) > before or None, _AFTERMATH)
        self.mock.let_messages_go()
        await self.nothing_more(sent)

    async def fault(self, name: str, **how: Any) -> None:
        types = frozenset(how.pop("types", ()))
        await self.mock.add_fault(Fault(name, types=types, **how))

    async def expect(
        self, found: Callable[[], T | None], otherwise: str, within: float | None = None
    ) -> T:
        """What must happen, within the patience of the bench unless it has a time of its own. A
        service that has ended meanwhile is told so."""
        within = self.patience if within is None else within
        await self.mock.recording.wait(lambda: found() or self._has_ended() or None, within)
        value = found()
        if value is not None:
            return value
        if self._has_ended():
            raise RuleBroken(
                f"{otherwise}: the service has ended with exit code {self.service.exit_code}"
            )
        raise RuleBroken(f"{otherwise}, within {within:g} s")

    def _has_ended(self) -> bool:
        return self._process is not None and self._process.exit_code is not None

    def note(self, text: str) -> None:
        """For the timeline: what was done to the service, or seen of it."""
        self.mock.recording.add(What.NOTE, detail=text)

    def check(self) -> None:
        """`HarnessFault` if what was seen cannot be trusted."""
        if self.mock.defects:
            raise HarnessFault(f"the mock failed: {self.mock.defects[0]}")

    async def calibrate(self) -> None:
        """How often an undisturbed run reads its first ref. `RuleBroken` if nothing comes of such a
        run, `HarnessFault` if the sample does not succeed, or without reading: no rule can be
        judged then."""
        self.reads_per_run = 1
        probe = self.send(self.contract.reply_via[0])
        try:
            body = (await probe.result()).body or {}
            await probe.settled()
        except RuleBroken as broken:
            raise RuleBroken(
                f"an undisturbed run of the valid sample came to nothing: {broken}",
                "The service does not receive, its replies go elsewhere, or they are refused.",
            ) from broken
        if body.get("status") != "SUCCEEDED":
            raise HarnessFault(
                "an undisturbed run of the valid sample did not succeed, so no rule can be judged:"
                f" {body.get('status')}, {body.get('error')}\n{self.service.log_tail()}"
            )
        if probe.refs[0].reads == 0:
            raise HarnessFault(
                "the valid sample succeeded without reading its ref: work is seen as reads of refs,"
                " so give a sample whose input is read"
            )
        self.reads_per_run = probe.refs[0].reads

    def tenant(self, lane: int | None = None) -> str:
        """A new one; of this lane if one is given."""
        while True:
            self._tenants += 1
            name = f"tenant-{self._tenants}"
            if lane is None or lane_of(normalise(name)) == lane:
                return name

    def _order(
        self, job_id: str, sample: Sample, via: ReplyVia, held: bool
    ) -> tuple[Order, tuple[ServedRef, ...]]:
        refs: list[ServedRef] = []

        def served(file: Any) -> ServedRef:
            ref = self.mock.serve(
                file.name,
                self.loaded.content_of(file),
                job_id=job_id,
                media_type=file.media_type,
                held=held,
            )
            refs.append(ref)
            return ref

        input_ref = None if sample.input is None else {"uri": served(sample.input).uri}
        prior = {
            step: [served(file).artifact() for file in files]
            for step, files in sample.prior_artifacts.items()
        }
        order = Order(
            self.contract.service,
            self.contract.step_type,
            payload=sample.payload,
            tenant_id=self.tenant(),
            input_ref=input_ref,
            prior_artifacts=prior,
            reply_via=via,
            lease=timedelta(seconds=120),
            heartbeat=timedelta(seconds=40),
        )
        return order, tuple(refs)


def _is_answered(entry: Entry) -> bool:
    return entry.answer.split(",")[0] in (
        "APPLIED",
        "DUPLICATE",
        "STALE_ATTEMPT",
        "RESULT_CONFLICT",
    )


def is_taken(entry: Entry) -> bool:
    """A reply that counts, or that has counted before."""
    return entry.answer.split(",")[0] in ("APPLIED", "DUPLICATE")


def _free_port() -> int:
    """Below those that the system gives to outgoing connections: one of these could take it before
    the service does."""
    while True:
        port = secrets.choice(_PORTS)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
