"""The mock as a target."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from lucius_contract.errors import ContractError
from lucius_contract.messages import CallbackUrls, Directive, parse_directive
from lucius_contract.states import StepState
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import Entry, Fault, Issued, Mock, MockSettings, Order
from orchestrator_mock.orders import encoded
from tests.mock.parity.target import (
    ACK_TIMEOUT,
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


class MockTarget:
    def __init__(self, mock: Mock) -> None:
        self._mock = mock
        self._sent: dict[str, tuple[Order, Issued]] = {}
        self.recording = mock.recording

    @property
    def connection_string(self) -> str:
        return self._mock.connection_string

    def faulty_urls(self, directive: Directive) -> CallbackUrls:
        assert directive.callback_urls is not None
        return directive.callback_urls

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def submit(
        self, via: ReplyVia = ReplyVia.HTTP, *, lease: timedelta = LEASE, marked: bool = True
    ) -> Directive:
        order = Order(
            SERVICE,
            STEP_TYPE,
            tenant_id=TENANT,
            reply_via=via,
            ack_timeout=ACK_TIMEOUT,
            lease=lease,
            heartbeat=HEARTBEAT,
            max_attempts=MAX_ATTEMPTS,
        )
        issued = self._mock.send(order, publish=marked)
        return self._given(order, issued)

    def message(self, job_id: str) -> Outgoing:
        _, issued = self._sent[job_id]
        return Outgoing(
            issued.message_id,
            issued.partition_key,
            issued.properties,
            round((issued.expires_at - self.now()).total_seconds()),
            encoded(issued.kind, issued.body),
        )

    async def expire(self, job_id: str) -> bool:
        before = self._mock.job(job_id).active.state
        with suppress(ContractError):
            self._mock.expire(job_id)
        return self._mock.job(job_id).active.state is not before

    async def outlive_lease(self, job_id: str) -> None:
        ends = self._mock.job(job_id).active.lease_expires_at
        assert ends is not None
        assert ends < self.now(), "the mock's leases run by the real time: ask for a short one"

    async def next_attempt(self, job_id: str) -> Directive | None:
        if self._mock.job(job_id).active.state is not StepState.FAILED_RETRY:
            return None
        order, issued = self._sent[job_id]
        return self._given(order, self._mock.next_attempt(issued, order))

    async def cancel(self, job_id: str) -> bool:
        try:
            self._mock.cancel(job_id)
        except ContractError:
            return False
        return True

    async def seen(self, job_id: str) -> Seen:
        return seen(self._mock.job(job_id))

    @property
    def taken(self) -> int:
        return len(self._over_bus())

    async def expect(self, _job_id: str) -> int:
        return self.taken

    async def verdict(self, number: int) -> str:
        entry = await self.recording.wait(
            lambda: next(iter(self._over_bus()[number:]), None), DEADLINE
        )
        assert entry is not None, f"no reply {number} came over the bus"
        return entry.answer.split(":")[0]

    async def add_fault(self, fault: Fault) -> None:
        await self._mock.add_fault(fault)

    async def clear_faults(self) -> None:
        await self._mock.clear_faults()

    def _given(self, order: Order, issued: Issued) -> Directive:
        self._sent[issued.job_id] = order, issued
        return parse_directive(encoded(issued.kind, issued.body))

    def _over_bus(self) -> list[Entry]:
        return [entry for entry in self.recording if entry.via.startswith("bus ")]


@asynccontextmanager
async def mock_target(folder: Path) -> AsyncIterator[MockTarget]:
    async with Mock(MockSettings(SERVICE, folder / "workspace")) as mock:
        yield MockTarget(mock)
        assert mock.defects == []
