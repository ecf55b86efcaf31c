"""The store of the outbox's dispatcher for webhooks, on the rows that commits have announced.

What this process holds is known here, by claim: the rows as the claim left them. Who holds a row is
in its key and its ETag, so a claim that another process took over cannot change it any more.

Dead letters lie elsewhere than webhooks, so that one who gives up writes three times: the webhook
becomes SPENT, the letter is buried, the webhook is DEAD. Whoever sweeps next finishes what a crash
cut short; a letter that is buried twice is one.

There is no replay. What was given up is a dead letter, and whoever missed it asks for the job.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import wraps
from itertools import count, groupby
from operator import attrgetter
from random import Random
from typing import Any, ParamSpec, TypeVar
from uuid import uuid4

from lucius_orchestrator.adapters.ledger.tables import webhooks
from lucius_orchestrator.adapters.ledger.tables.letters import Letters
from lucius_orchestrator.adapters.ledger.tables.store import Row
from lucius_orchestrator.adapters.ledger.tables.webhooks import (
    DEAD,
    DUE,
    HELD,
    SPENT,
    Move,
    Webhooks,
    key_of,
)
from lucius_orchestrator.ports.ledger import LedgerUnavailable
from lucius_orchestrator.ports.webhooks import NAMESPACE, dead_letter_of
from lucius_outbox.errors import LeaseLost, OnDeadFailed, ReplayForbidden, StoreUnavailable
from lucius_outbox.message import Claimed, Dead, Failure
from lucius_outbox.redaction import redacted
from lucius_outbox.retry import RetryPolicy
from lucius_outbox.store import Buried, Replayed, TopicStats

_REMEMBERED = timedelta(days=1)
"""How long claims that nobody settled are known after their lease: a late answer still counts."""

_EXPIRED_TOO_OFTEN = "its lease expired too often: does delivering it end the process?"

P = ParamSpec("P")
T = TypeVar("T")


def _verb(work: Callable[P, Awaitable[T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    @wraps(work)
    async def verb(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await work(*args, **kwargs)
        except LedgerUnavailable as error:
            raise StoreUnavailable(str(error)) from error

    return verb


@dataclass(slots=True)
class _Claim:
    """The rows of one claim that are not settled. One verb at a time: a lease that is extended
    while its row is acknowledged would stay behind."""

    until: datetime
    rows: dict[str, Row]
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def held(self, ids: Sequence[str]) -> list[Row]:
        return [self.rows[name] for name in ids if name in self.rows]

    def settle(self, ids: Sequence[str]) -> None:
        for name in ids:
            self.rows.pop(name, None)


class TableWebhookStore:
    """A `lucius_outbox.store.Store` for one namespace. It is closed with its ledger."""

    namespace = NAMESPACE

    def __init__(
        self,
        rows: Webhooks,
        letters: Letters,
        *,
        clock: Callable[[], datetime],
        policy: RetryPolicy,
        chance: Callable[[], float] | None = None,
    ) -> None:
        self._rows = rows
        self._letters = letters
        self._clock = clock
        self._policy = policy
        self._chance = chance or Random().random  # noqa: S311 - spreads retries, guards nothing
        self._worker_id = str(uuid4())
        self._claim_nos = count(1)
        self._move_nos = count(1)
        self._claims: dict[int, _Claim] = {}

    @property
    def worker_id(self) -> str:
        return self._worker_id

    async def check_schema(self) -> None:
        """The ledger has checked it when it was opened."""

    @_verb
    async def claim_batch(self, size: int, lease: timedelta) -> list[Claimed]:
        now = self._clock()
        self._forget_lapsed(now)
        rows = await self._rows.find(HELD, key_of(HELD, now), size, self._can_be_reclaimed)
        due = webhooks.through(DUE, now)
        rows += await self._rows.find(DUE, due, size - len(rows), self._can_be_tried)
        if not rows:
            return []
        until, claim_no = now + lease, next(self._claim_nos)
        moved = await self._rows.move([self._claim(row, until) for row in rows])
        held = sorted((row for row in moved if row is not None), key=_became_due)
        self._claims[claim_no] = _Claim(until, {_id(row): row for row in held})
        reclaimed = {_id(row) for row in rows if _state(row) == HELD}
        return [_claimed(row, claim_no, _id(row) in reclaimed) for row in held]

    @_verb
    async def ack(self, claims: Sequence[Claimed]) -> None:
        lost: list[str] = []
        for claim, ids in self._by_claim(claims):
            async with claim.lock:
                delivered = [row for row in claim.held(ids) if await self._is_held(row)]
                await self._rows.delete(delivered)
                done = {_id(row) for row in delivered}
                lost += [name for name in ids if name not in done]
                claim.settle(ids)
        _require_none("ack", lost)

    @_verb
    async def nack(self, failures: Sequence[Failure]) -> Buried:
        by_id = {failure.claimed.id: failure for failure in failures}
        claims = [failure.claimed for failure in failures]
        rows, lost = await self._moved(claims, lambda row: self._failed(row, by_id[_id(row)]))
        buried = await self._bury([row for row in rows if _state(row) == SPENT])
        _require_none("nack", lost, buried)
        return buried

    @_verb
    async def release(self, claims: Sequence[Claimed]) -> None:
        _, lost = await self._moved(claims, self._released)
        _require_none("release", lost)

    @_verb
    async def extend(self, claims: Sequence[Claimed], lease: timedelta) -> None:
        until = self._clock() + lease
        lost: list[str] = []
        for claim, ids in self._by_claim(claims):
            async with claim.lock:
                extended = [self._extended(row, until) for row in claim.held(ids)]
                moved = await self._rows.move(extended)
                claim.settle(ids)
                claim.rows |= {_id(row): row for row in moved if row is not None}
                claim.until = max(claim.until, until)
                lost += [name for name in ids if name not in claim.rows]
        _require_none("extend", lost)

    @_verb
    async def sweep_dead(self, limit: int = 100) -> Buried:
        now = self._clock()
        spent = await self._rows.find(
            DUE, webhooks.through(DUE, now), limit, self._has_no_attempts_left
        )
        moves = [self._given_up(row, row.values["error"]) for row in spent]
        expired = await self._rows.find(
            HELD, key_of(HELD, now), limit - len(spent), self._has_no_reclaims_left
        )
        moves += [self._given_up(row, _EXPIRED_TOO_OFTEN) for row in expired]
        await self._rows.move(moves)
        return await self._bury(await self._rows.find(SPENT, f'{SPENT}"', limit, _any))

    async def replay(self, ids: Sequence[str], *, by: str, reason: str) -> int:  # noqa: ARG002
        raise ReplayForbidden(self.namespace)

    async def forbid_replay(self, forbidden: bool = True) -> None:
        """It is forbidden, and stays so."""
        if not forbidden:
            raise ReplayForbidden(self.namespace)

    async def replays(self, limit: int = 100) -> list[Replayed]:  # noqa: ARG002
        return []

    @_verb
    async def dead(self, limit: int = 100) -> list[Dead]:
        return [_dead(row) for row in await self._rows.find(DEAD, f'{DEAD}"', limit, _any)]

    @_verb
    async def stats(self, *, delivered: bool = False) -> list[TopicStats]:
        """By reading all rows, which are those that wait and those that were given up. What was
        delivered is not there to be counted."""
        counted, oldest = Counter[tuple[str, str]](), dict[str, datetime]()
        for state in (DUE, HELD, SPENT, DEAD):
            async for row in self._rows.all(state):
                topic, created_at = row.values["topic"], row.values["written_at"]
                counted[topic, state] += 1
                if state != DEAD:
                    oldest[topic] = min(oldest.get(topic, created_at), created_at)
        now = self._clock()
        return [
            TopicStats(
                self.namespace,
                topic,
                pending=counted[topic, DUE],
                processing=counted[topic, HELD] + counted[topic, SPENT],
                dead=counted[topic, DEAD],
                delivered=0 if delivered else None,
                oldest=oldest.get(topic),
                age=now - oldest[topic] if topic in oldest else None,
            )
            for topic in sorted({topic for topic, _ in counted})
        ]

    async def prune(self, older_than: timedelta, limit: int = 1000) -> int:  # noqa: ARG002
        """What was delivered was deleted at once."""
        return 0

    async def listen(self, wake: Callable[[], None]) -> None:
        """Hears commits of its own ledger only."""
        await self._rows.listen(wake)

    async def _can_be_reclaimed(self, row: Row) -> bool:
        return not await self._has_no_reclaims_left(row)

    async def _can_be_tried(self, row: Row) -> bool:
        return not await self._has_no_attempts_left(row) and await self._rows.stands(row)

    async def _has_no_attempts_left(self, row: Row) -> bool:
        attempts: int = row.values["attempts"]
        return attempts >= self._policy.max_attempts

    async def _has_no_reclaims_left(self, row: Row) -> bool:
        reclaims: int = row.values["reclaims"]
        return reclaims >= self._policy.max_reclaims

    async def _is_held(self, row: Row) -> bool:
        """A lease that is over may have been taken over; before that nobody touches the row."""
        until: datetime = row.values["until"]
        return until >= self._clock() or await self._rows.is_unchanged(row)

    async def _moved(
        self, claims: Sequence[Claimed], to: Callable[[Row], Move]
    ) -> tuple[list[Row], list[str]]:
        """Settles them: the rows as they are now, and the ids of those that are not held."""
        rows: list[Row] = []
        for claim, ids in self._by_claim(claims):
            async with claim.lock:
                moved = await self._rows.move([to(row) for row in claim.held(ids)])
                rows += [row for row in moved if row is not None]
                claim.settle(ids)
        done = {_id(row) for row in rows}
        return rows, [claimed.id for claimed in claims if claimed.id not in done]

    def _by_claim(self, claims: Sequence[Claimed]) -> Iterator[tuple[_Claim, list[str]]]:
        for claim_no, group in groupby(claims, attrgetter("claim_no")):
            claim = self._claims.get(claim_no) or _Claim(self._clock(), {})
            yield claim, [claimed.id for claimed in group]

    def _forget_lapsed(self, now: datetime) -> None:
        self._claims = {
            claim_no: claim
            for claim_no, claim in self._claims.items()
            if claim.rows and now - claim.until < _REMEMBERED
        }

    def _claim(self, row: Row, until: datetime) -> Move:
        is_reclaim = _state(row) == HELD
        return self._move(
            row,
            key_of(HELD, until, row),
            base=None,
            until=until,
            attempts=row.values["attempts"] + (not is_reclaim),
            reclaims=row.values["reclaims"] + is_reclaim,
        )

    def _extended(self, row: Row, until: datetime) -> Move:
        return self._move(row, key_of(HELD, until, row), until=until)

    def _released(self, row: Row) -> Move:
        key = key_of(DUE, row.values["due_at"], row)
        return self._move(row, key, until=None, attempts=row.values["attempts"] - 1)

    def _failed(self, row: Row, failure: Failure) -> Move:
        error = redacted(failure.error)
        delay = self._policy.delay_after(row.values["attempts"], self._chance())
        if delay is None or failure.permanent:
            return self._given_up(row, error)
        due_at = self._clock() + delay
        return self._move(row, key_of(DUE, due_at, row), until=None, due_at=due_at, error=error)

    def _given_up(self, row: Row, error: str | None) -> Move:
        now = self._clock()
        return self._move(row, key_of(SPENT, now, row), until=None, due_at=now, error=error)

    def _move(self, row: Row, key: str, **values: Any) -> Move:
        moved_by = f"{self._worker_id}.{next(self._move_nos)}"
        return Move(row, key, {**row.values, **values, "moved_by": moved_by})

    async def _bury(self, spent: Sequence[Row]) -> Buried:
        buried = Buried([], [])
        for row in spent:
            dead, given_up_at = _dead(row), row.values["due_at"]
            try:
                await self._letters.bury(dead_letter_of(dead, given_up_at))
                key = key_of(DEAD, row.values["written_at"], row)
                (moved,) = await self._rows.move([self._move(row, key)])
            except LedgerUnavailable as error:
                failed = OnDeadFailed(dead.id)
                failed.__cause__ = error
                buried.failed.append(failed)
            else:
                if moved is not None:
                    buried.dead.append(dead)
        return buried


def _require_none(verb: str, lost: Sequence[str], buried: Buried | None = None) -> None:
    if lost:
        raise LeaseLost(verb, lost, buried)


async def _any(_: Row) -> bool:
    return True


def _id(row: Row) -> str:
    event_id: str = row.values["event_id"]
    return event_id


def _state(row: Row) -> str:
    return row.key.partition("!")[0]


def _became_due(row: Row) -> tuple[datetime, str]:
    return row.values["due_at"], row.key.split("!", 2)[2]


def _claimed(row: Row, claim_no: int, is_reclaim: bool) -> Claimed:
    values = row.values
    return Claimed(
        id=_id(row),
        namespace=NAMESPACE,
        topic=values["topic"],
        tenant_id=None,
        dedupe_key=_id(row),
        ordering_key=None,
        payload=values["payload"],
        attempts=values["attempts"],
        reclaims=values["reclaims"],
        claim_no=claim_no,
        reclaimed=is_reclaim,
        locked_until=values["until"],
        created_at=values["written_at"],
    )


def _dead(row: Row) -> Dead:
    values = row.values
    return Dead(
        id=_id(row),
        namespace=NAMESPACE,
        topic=values["topic"],
        tenant_id=None,
        dedupe_key=_id(row),
        ordering_key=None,
        payload=values["payload"],
        attempts=values["attempts"],
        reclaims=values["reclaims"],
        last_error=values["error"],
        created_at=values["written_at"],
    )
