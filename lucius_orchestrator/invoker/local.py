"""`LocalInvoker`: the invoker, where it is this process itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.domain.workflow import Next, TimerName
from lucius_orchestrator.invoker.desk import InvokerDesk
from lucius_orchestrator.ports.invoker import (
    AttemptName,
    InvokerRefused,
    InvokerUnavailable,
    Reported,
)
from lucius_orchestrator.ports.ledger import LedgerError


class LocalInvoker:
    def __init__(self, desk: InvokerDesk) -> None:
        self._desk = desk

    async def open_attempt(self, attempt: AttemptName, lease_expires_at: datetime) -> Next:
        with _as_the_port_has_it():
            return (await self._desk.open_attempt(attempt, lease_expires_at)).following

    async def publish(self, attempt: AttemptName) -> Next:
        with _as_the_port_has_it():
            return (await self._desk.publish(attempt)).following

    async def report(self, attempt: AttemptName, event: str, deadline: datetime) -> Reported:
        with _as_the_port_has_it():
            return await self._desk.report(attempt, TimerName(event), deadline)

    async def command(self, job_id: str, verb: str, by: str | None) -> Next:
        with _as_the_port_has_it():
            return await self._desk.command(job_id, verb, by)


@contextmanager
def _as_the_port_has_it() -> Iterator[None]:
    try:
        yield
    except ContractError as error:
        if error.code is ErrorCode.UNAVAILABLE:
            raise InvokerUnavailable(error.message) from error
        raise InvokerRefused(error.code, error.message) from error
    except LedgerError as error:
        raise InvokerUnavailable(str(error)) from error
