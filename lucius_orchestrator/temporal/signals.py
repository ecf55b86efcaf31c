"""Tells workflows what happened to their jobs.

A reply or a command and its SIGNAL row are one commit; the row ends when the workflow has the
signal. Every signal says all that comes next, so of several that wait for one job only the last is
sent. An ACK, which changes no more than a deadline, may wait a little for its RESULT: each signal
costs the server a task of the workflow.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from lucius_bus.waiting import until_set
from lucius_contract.errors import ContractError
from lucius_orchestrator.domain.aggregate import JsonObject
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.domain.events import WorkflowLost
from lucius_orchestrator.domain.workflow import Signal
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.ports.ledger import Claim, LedgerError
from lucius_orchestrator.ports.workflows import (
    WorkflowNotFound,
    Workflows,
    WorkflowsUnavailable,
)
from lucius_orchestrator.temporal.courier import Courier, CourierSettings

NAME = "signals"


class _Waiting(NamedTuple):
    """ACKs of a job, the last of them at the end, and when they must go out."""

    claims: list[Claim]
    until: float


class WorkflowSignals(Courier):
    """Runs by `run()` until `stop()`."""

    def __init__(
        self, engine: LedgerEngine, workflows: Workflows, settings: CourierSettings | None = None
    ) -> None:
        super().__init__(engine, OutboxKind.SIGNAL, self._take_all, settings)
        self._workflows = workflows
        self._waiting: dict[str, _Waiting] = {}
        self._has_waiting = asyncio.Event()
        self._takes_no_more = asyncio.Event()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._send_acks())
            try:
                await super().run()
            finally:
                self._takes_no_more.set()
                self._has_waiting.set()

    async def _take_all(self, claims: Sequence[Claim]) -> None:
        jobs: dict[str, list[Claim]] = {}
        for claim in claims:
            jobs.setdefault(claim.job_id, []).append(claim)
        ready = [taken for job in jobs.values() if (taken := self._taken(job))]
        await self._send_all(ready)

    def _taken(self, claims: list[Claim]) -> list[Claim]:
        """All signals of the job that are here, oldest first; none if they can wait."""
        job_id = claims[0].job_id
        waiting = self._waiting.pop(job_id, None)
        if waiting is not None:
            claims = [*waiting.claims, *claims]
        claims.sort(key=_order)
        linger = self.settings.linger.total_seconds()
        if _body(claims[-1])["signal"] != Signal.STEP_ACK or not linger:
            return claims
        until = waiting.until if waiting else asyncio.get_running_loop().time() + linger
        self._waiting[job_id] = _Waiting(claims, until)
        self._has_waiting.set()
        return []

    async def _send_acks(self) -> None:
        """Those that have waited long enough; at the end all."""
        while self._waiting or not self._takes_no_more.is_set():
            await self._has_waiting.wait()
            await until_set(self._takes_no_more, self.settings.linger / 2)
            await self._send_all([self._waiting.pop(job).claims for job in self._over()])
            if not self._waiting and not self._takes_no_more.is_set():
                self._has_waiting.clear()

    def _over(self) -> list[str]:
        now = asyncio.get_running_loop().time()
        is_last = self._takes_no_more.is_set()
        return [job for job, waiting in self._waiting.items() if is_last or waiting.until <= now]

    async def _send_all(self, jobs: Sequence[list[Claim]]) -> None:
        sent = await asyncio.gather(*(self._sent(claims[-1]) for claims in jobs))
        claims = [claim for job in jobs for claim in job]
        done = [is_done for job, is_done in zip(jobs, sent, strict=True) for _ in job]
        if claims:
            await self.settle(claims, done)

    async def _sent(self, claim: Claim) -> bool:
        """Whether nothing is left to do."""
        body = _body(claim)
        try:
            await self._workflows.signal(claim.job_id, body["signal"], body)
        except WorkflowNotFound:
            return await self._restarted(claim.job_id)
        except WorkflowsUnavailable as error:
            self._engine.telemetry.workflows_away("signal", error)
            return False
        return True

    async def _restarted(self, job_id: str) -> bool:
        """A job that has ended needs no workflow; another one gets a new one, which goes on from
        what is stored, the signal's news included."""
        try:
            await self._engine.apply(job_id, WorkflowLost("NOT_FOUND", by=NAME))
        except LedgerError as error:
            self._engine.telemetry.workflows_away("restart", error)
            return False
        except ContractError:
            return True  # the job is gone
        return True


def _body(claim: Claim) -> JsonObject:
    return claim.row.body


def _order(claim: Claim) -> tuple[int, datetime]:
    return _body(claim)["next"]["seq"], claim.row.created_at
