"""`Mock`: an orchestrator that does to one service what a script says, and remembers all of it."""

import os
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import unquote

from lucius_contract.messages import directive_properties
from lucius_contract.refs import tenant_folder
from lucius_orchestrator.domain.aggregate import Aggregate, JsonObject, ReplyVia
from lucius_orchestrator.domain.decision import DirectiveRow
from orchestrator_mock.faults import Fault, Faults
from orchestrator_mock.front import Front
from orchestrator_mock.judging import HttpJudge
from orchestrator_mock.lanes import Lanes
from orchestrator_mock.ledger import MockLedger, Refs
from orchestrator_mock.orders import Kind, Order, encoded
from orchestrator_mock.recording import SETTLED, Entry, Recording, What
from orchestrator_mock.refs import RefServer, ServedRef
from servicebus_emulator.faults import Fault as BusFault
from servicebus_emulator.faults import FaultKind, Point
from servicebus_emulator.server import Emulator

_ALWAYS = 1_000_000
_BUS_FAULTS = {
    "settlement-lost": (FaultKind.LOSE_SETTLEMENT, Point.SETTLE),
    "reply-dropped": (FaultKind.DROP, Point.SEND),
}
"""Those that strike inside the emulator; nobody but the service has a connection to it."""
_TOKEN_BYTES = 32
_SYSTEM = "lucius"


@dataclass(frozen=True, slots=True)
class MockSettings:
    """`workspace` is the folder that the service is given as its storage root. Locks may be short,
    so that what happens when one runs out need not be waited for."""

    service: str
    workspace: Path
    lock_seconds: float = 60.0
    bus_port: int = 0
    """0: a free one."""


class Issued(NamedTuple):
    """A directive as it goes out."""

    job_id: str
    step_id: str
    attempt_no: int
    lease_id: str
    lane: int
    message_id: str
    partition_key: str
    body: dict[str, Any]
    properties: dict[str, str | int]
    expires_at: datetime
    kind: Kind


class Mock:
    """Use it in `async with`. Everything it does is in `recording`."""

    def __init__(self, settings: MockSettings) -> None:
        self.settings = settings
        self.recording = Recording()
        self.faults = Faults()
        self.refs = RefServer(self.faults, self.recording)
        self._ledger = MockLedger(lambda: datetime.now(UTC), os.urandom)
        self._judge = HttpJudge(self._ledger)
        self._lanes = Lanes(settings.service, settings.lock_seconds, self._ledger, self.recording)
        self._front = Front(self._judge, self.faults, self.recording)
        self._bus_port = 0
        self._stack = AsyncExitStack()
        self._published: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        try:
            await self._lanes.open(self.settings.bus_port)
            self._stack.push_async_callback(self._lanes.close)
            for part in (self._front, self.refs):
                await part.open()
                self._stack.push_async_callback(part.close)
        except BaseException:
            await self._stack.aclose()
            raise
        self._bus_port = self.bus.port
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    @property
    def connection_string(self) -> str:
        """For the service."""
        return (
            f"Endpoint=sb://127.0.0.1:{self._bus_port};SharedAccessKeyName=local;"
            "SharedAccessKey=local;UseDevelopmentEmulator=true;"
        )

    @property
    def bus(self) -> Emulator:
        """For a service in this process."""
        return self._lanes.emulator

    @property
    def bus_address(self) -> str:
        return f"sb://127.0.0.1:{self._bus_port}"

    def job(self, job_id: str) -> Aggregate:
        """As the ledger has it. `ContractError` if there is none."""
        return self._ledger.job(job_id)

    def workspace_of(self, job_id: str, tenant_id: str) -> Path:
        return self.settings.workspace / _SYSTEM / unquote(tenant_folder(tenant_id)) / job_id

    def output_of(self, job_id: str) -> Path:
        return self.settings.workspace / "published" / job_id / "output"

    def new_job_id(self) -> str:
        """For refs that are served before the order that names them."""
        return self._ledger.new_id()

    def send(
        self,
        order: Order,
        kind: Kind = Kind.VALID,
        *,
        copies: int = 1,
        job_id: str | None = None,
        publish: bool = True,
    ) -> Issued:
        """Create a job and publish the directive of its first attempt, or keep that for later."""
        job_id = job_id or self.new_job_id()
        row = self._ledger.create(job_id, order, self._refs_of(job_id, order))
        issued = self._issued(job_id, row, kind, order)
        if publish:
            self.publish(issued, copies)
        return issued

    def publish(self, issued: Issued, copies: int = 1) -> None:
        """Put it on its lane, once more if it was there before."""
        self.mark_sent(issued)
        raw = encoded(issued.kind, issued.body)
        left = int((issued.expires_at - datetime.now(UTC)).total_seconds() * 1000)
        ttl = None if issued.kind is Kind.EXPIRED else max(left, 1)
        for _ in range(copies):
            self._published[issued.message_id] = self._published.get(issued.message_id, 0) + 1
            self.recording.add(
                What.PUBLISHED,
                job_id=issued.job_id,
                attempt_no=issued.attempt_no,
                message_id=issued.message_id,
                detail="" if issued.kind is Kind.VALID else issued.kind,
                via=f"global-bus-p{issued.lane}",
            )
            self._lanes.publish(
                issued.lane, raw, issued.message_id, issued.partition_key, issued.properties, ttl
            )

    def mark_sent(self, issued: Issued) -> None:
        """The ledger believes that it went out."""
        self._ledger.sent(issued.job_id, issued.step_id, issued.attempt_no, issued.lease_id)

    @property
    def dropped_replies(self) -> int:
        """How often `reply-dropped` has struck since it was switched on without a count."""
        active = self.bus.faults.active()
        return sum(_ALWAYS - each.count for each in active if each.kind is FaultKind.DROP)

    def expire(self, job_id: str) -> None:
        """The orchestrator gives the attempt up, whatever the service thinks."""
        self._ledger.expire(job_id)

    def next_attempt(self, issued: Issued, order: Order, *, publish: bool = True) -> Issued:
        """The next attempt of the same job; one that is open is given up first."""
        row = self._ledger.retry(issued.job_id)
        following = self._issued(issued.job_id, row, Kind.VALID, order)
        if publish:
            self.publish(following)
        return following

    def cancel(self, job_id: str) -> None:
        self._ledger.cancel(job_id)

    def serve(
        self, name: str, content: bytes, *, job_id: str, media_type: str, held: bool = False
    ) -> ServedRef:
        return self.refs.serve(name, content, job_id=job_id, media_type=media_type, held=held)

    def settlements(self, issued: Issued) -> list[Entry]:
        """Of all copies that were published."""
        return [
            entry
            for entry in self.recording
            if entry.message_id == issued.message_id and entry.what in SETTLED
        ]

    def is_settled(self, issued: Issued) -> bool:
        return len(self.settlements(issued)) >= self._published.get(issued.message_id, 0)

    @property
    def defects(self) -> list[str]:
        """What went wrong with the mock itself: then nothing that it saw is a proof."""
        return [*self._front.defects, *self._lanes.defects, *self.refs.defects]

    def waiting(self) -> int:
        """Directives on the bus that are not settled."""
        return self._lanes.waiting()

    def keep_messages(self) -> None:
        """Let no lock run out on what the service holds now, so that it is not delivered a second
        time, until `let_messages_go`."""
        self._lanes.keep()

    def let_messages_go(self) -> None:
        self._lanes.let_go()

    def purge(self) -> None:
        self._lanes.purge()

    @property
    def active_faults(self) -> dict[str, int | None]:
        """Those that are on, with how often they will still strike; None: until cleared."""
        names = {kind: name for name, (kind, _) in _BUS_FAULTS.items()}
        of_bus = {names[f.kind]: f.count for f in self.bus.faults.active()}
        lasting = {name: None if count > _ALWAYS // 2 else count for name, count in of_bus.items()}
        return {**{fault.name: fault.count for fault in self.faults.active}, **lasting}

    async def add_fault(self, fault: Fault) -> None:
        """Switch it on; those of the bus that strike at once have struck when this returns."""
        self.recording.add(What.FAULT, job_id=fault.job_id or "", detail=f"{fault.name} is on")
        if fault.name == "callback-down":
            await self._front.close()
        elif fault.name == "bus-away":
            await self.bus.stop()
        elif fault.name == "bus-dropped":
            self.bus.drop_connections()
            return
        elif fault.name in _BUS_FAULTS:
            kind, point = _BUS_FAULTS[fault.name]
            struck = BusFault(kind, point=point, count=fault.count or _ALWAYS)
            self.bus.faults.add(struck)
            return
        self.faults.add(fault)

    async def clear_faults(self, *names: str) -> None:
        """Switch off those of these names, or all: who was away is back when this returns."""
        cleared = {fault.name for fault in self.faults.clear(names or None)}
        cleared |= self._clear_bus_faults(names or tuple(_BUS_FAULTS))
        if not names or "callback-hold" in names:
            self._front.release()
        if "callback-down" in cleared:
            await self._front.open()
        if "bus-away" in cleared:
            await self.bus.start(port=self._bus_port)
        for name in sorted(cleared):
            self.recording.add(What.FAULT, detail=f"{name} is off")

    def _clear_bus_faults(self, names: Sequence[str]) -> set[str]:
        gone = {_BUS_FAULTS[name][0]: name for name in names if name in _BUS_FAULTS}
        faults = self.bus.faults
        active = faults.active()
        faults.clear()
        for fault in active:
            if fault.kind not in gone:
                faults.add(fault)
        return {gone[fault.kind] for fault in active if fault.kind in gone}

    def _refs_of(self, job_id: str, order: Order) -> Refs:
        folder = self.workspace_of(job_id, order.tenant_id)
        return Refs(
            order.input_ref or _file_ref(self.settings.workspace / "nothing"),
            order.workspace_ref or _file_ref(folder, is_folder=True),
            order.output_ref or _file_ref(self.output_of(job_id)),
        )

    def _issued(self, job_id: str, row: DirectiveRow, kind: Kind, order: Order) -> Issued:
        body: dict[str, Any] = {**row.body, "prior_artifacts": dict(order.prior_artifacts)}
        if row.reply_via is ReplyVia.HTTP:
            token = os.urandom(_TOKEN_BYTES).hex()
            self._judge.allow(token, (job_id, row.step_id, row.attempt_no, row.lease_id))
            body |= {"callback_urls": self._front.urls, "callback_token": token}
        return Issued(
            job_id,
            row.step_id,
            row.attempt_no,
            row.lease_id,
            int(body["lane"]),
            row.message_id,
            row.partition_key,
            body,
            directive_properties(body, row.service),
            row.expires_at,
            kind,
        )


def _file_ref(path: Path, *, is_folder: bool = False) -> JsonObject:
    return {"uri": path.as_uri() + "/" if is_folder else path.as_uri()}
