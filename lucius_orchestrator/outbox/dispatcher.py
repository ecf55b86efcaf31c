"""Publishes directives that were committed, as many as their services are about to pick up.

Attempts of jobs that Temporal drives wait in the same queues, as TURN rows: these are granted, and
the workflow has the directive published.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from math import inf

from lucius_bus.port import Bus
from lucius_contract.errors import ContractError
from lucius_contract.states import JobState
from lucius_orchestrator.domain.aggregate import Turn
from lucius_orchestrator.domain.decision import OutboxKind, OutboxRow
from lucius_orchestrator.domain.events import TurnGranted
from lucius_orchestrator.domain.workflow import wants_attempt
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.outbox.claiming import ClaimLoop, ClaimSettings
from lucius_orchestrator.outbox.lobby import Lobby
from lucius_orchestrator.outbox.publishing import (
    ArtifactToken,
    DirectivePublisher,
    ReplyAddress,
    row_of,
)
from lucius_orchestrator.outbox.turns import FairTurns, Weight, same_weight
from lucius_orchestrator.ports.ledger import Claim, LedgerError

_PATIENCE = 1.0
"""Seconds that a directive waits for room in memory."""


@dataclass(frozen=True, slots=True)
class DispatcherSettings(ClaimSettings):
    """A publish ends before the lease does, so that no other dispatcher publishes the same beside
    it. `burst_share` is what BURST gets of the room of a service while DEFAULT waits."""

    publish_timeout: timedelta = timedelta(seconds=20)
    burst_share: float = 0.5

    def __post_init__(self) -> None:
        ClaimSettings.__post_init__(self)
        if not timedelta(0) < self.publish_timeout < self.lease:
            raise ValueError("publish_timeout must be above zero and below the lease")
        if not 0 < self.burst_share <= 1:
            raise ValueError("burst_share must be above 0 and at most 1")


class Dispatcher(ClaimLoop):
    """Runs by `run()` until `stop()`, which returns when all that was claimed is settled.

    A directive is published at once if its service has room and none waits before it; otherwise it
    stays PENDING until it is its tenant's turn."""

    def __init__(
        self,
        engine: LedgerEngine,
        bus: Bus,
        settings: DispatcherSettings | None = None,
        reply_address: ReplyAddress | None = None,
        artifact_token: ArtifactToken | None = None,
        weight: Weight = same_weight,
    ) -> None:
        settings = settings or DispatcherSettings()
        self._publisher = DirectivePublisher(
            engine, bus, settings.publish_timeout, reply_address, artifact_token
        )
        super().__init__(engine, OutboxKind.DIRECTIVE, self._publish, settings, leads=True)
        self._traffic = engine.traffic
        self._turns = FairTurns(self._traffic, settings.batch_size, weight, settings.burst_share)
        self._lobby = Lobby()

    async def run(self) -> None:
        self._traffic.on_room = self._room_came
        try:
            await super().run()
        finally:
            self._traffic.on_room = None
            await self._empty_lobby(inf)

    def wants(self, row: OutboxRow) -> bool:
        """Not where others wait in the ledger: it would jump the queue."""
        service = row.service  # type: ignore[union-attr]  # directives alone are asked about
        if super().wants(row) and not self._traffic.has_backlog(service):
            return True
        self._traffic.set_backlog(service, waits=True)
        return False

    def take(self, claims: Sequence[Claim]) -> None:
        traffic, lobby = self._traffic, self._lobby
        for claim in claims:
            row = row_of(claim)
            if (lobby and lobby.has(row.service)) or not traffic.room(row.service):
                lobby.add(claim, asyncio.get_running_loop().time())
                traffic.await_room(row.service)
            else:
                traffic.claimed(claim.job_id, row.step_id, row.service, row.body["lane"])
                super().take((claim,))

    def _room_came(self) -> None:
        if self._traffic.with_backlog():
            self.wake()
        else:
            self._woken.set()

    def _count_waiting(self) -> int:
        return super()._count_waiting() + len(self._lobby)

    def _given(self) -> list[Claim]:
        if self._lobby:
            self._admit()
        return super()._given()

    def _admit(self) -> None:
        """Let in from the lobby whom there is room for."""
        for service in self._lobby.services():
            room = self._traffic.room(service)
            if not room:
                self._traffic.await_room(service)
                continue
            waiting = self._turns.behind_last(self._lobby.queues(service))
            for queue, count in self._turns.divide(service, room, waiting).items():
                claims = list(self._lobby.take(queue, count))
                self._count(claims)
                super().take(claims)

    async def _fetch(self, lanes: frozenset[int]) -> list[Claim]:
        await self._empty_lobby(asyncio.get_running_loop().time() - _PATIENCE)
        claims = await self._engine.ledger.claim_in_turn(self._turns, self._settings.lease, lanes)
        unfit = self._turns.settle(claims)
        if unfit:
            await self._engine.ledger.release(unfit)
            claims = [claim for claim in claims if claim not in unfit]
        self._count(claims)
        return claims

    async def _empty_lobby(self, before: float) -> None:
        """What has waited for long is for the ledger to keep; a ledger that fails finds it itself
        when the claims have lapsed."""
        claims = self._lobby.leave(before)
        for service in {row_of(claim).service for claim in claims}:
            self._traffic.set_backlog(service, waits=True)
        if claims:
            with suppress(LedgerError):
                await self._engine.ledger.release(claims)

    def _may_be_more(self, claims: Sequence[Claim]) -> bool:
        return bool(claims) and any(map(self._traffic.room, self._traffic.with_backlog()))

    def _lost(self, claim: Claim) -> None:
        self._traffic.unpublished(claim.job_id, row_of(claim).step_id)

    def _count(self, claims: Sequence[Claim]) -> None:
        for claim in claims:
            row = row_of(claim)
            is_turn = claim.kind is OutboxKind.TURN
            count = self._traffic.turn_claimed if is_turn else self._traffic.claimed
            count(claim.job_id, row.step_id, row.service, row.body["lane"])

    async def _publish(self, claims: Sequence[Claim]) -> None:
        turns = [claim for claim in claims if claim.kind is OutboxKind.TURN]
        if not turns:
            await self._send(claims)
            return
        directives = [claim for claim in claims if claim.kind is not OutboxKind.TURN]
        await asyncio.gather(self._send(directives), *map(self._guarded_grant, turns))

    async def _send(self, claims: Sequence[Claim]) -> None:
        if not claims:
            return
        try:
            await self._publisher.deliver(claims)
        finally:
            for claim in claims:
                self._traffic.unpublished(claim.job_id, row_of(claim).step_id)

    async def _guarded_grant(self, claim: Claim) -> None:
        """What is not settled is claimed again when its lease is over."""
        is_granted = False
        try:
            is_granted = await self._grant(claim)
        except (LedgerError, ContractError) as error:
            self._engine.telemetry.dispatch_failed(row_of(claim).topic, 1, error)
        finally:
            if not is_granted:
                self._traffic.unpublished(claim.job_id, row_of(claim).step_id)

    async def _grant(self, claim: Claim) -> bool:
        """Return whether the workflow opens the attempt now. A job that is paused keeps its place
        in the queue: else all that were paused would begin at once when they are resumed."""
        row, engine = row_of(claim), self._engine
        stored = claim.stored or await engine.ledger.load(claim.job_id)
        if stored is None:
            await engine.ledger.discard([claim])
            return False
        engine.remember(stored)
        if stored.aggregate.job.state is JobState.PAUSED:
            await engine.ledger.postpone([claim], "the job is paused")
            return False
        event = TurnGranted(row.step_id, row.attempt_no)
        _, stored = await engine.apply(claim.job_id, event, claim)
        job, step = stored.aggregate.job, stored.aggregate.active
        is_next = (step.step_id, step.attempt_no + 1) == (row.step_id, row.attempt_no)
        return is_next and step.turn is Turn.GRANTED and wants_attempt(job, step)
