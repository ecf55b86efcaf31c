"""Claims on steps: who gets one, and how."""

import asyncio
import itertools
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from lucius_contract.timeouts import MAX_CLOCK_SKEW
from lucius_sdk.idempotency_store.decisions import (
    CrashLoop,
    Decision,
    Granted,
    Held,
    Refused,
    Resend,
    Run,
    Wanted,
    decide_claim,
    is_free,
    is_over,
    renewed,
)
from lucius_sdk.idempotency_store.errors import Conflict, StoreUnavailable
from lucius_sdk.idempotency_store.held_claim import TRIES, HeldClaim, WallClock, about
from lucius_sdk.idempotency_store.port import DedupStore, Stored
from lucius_sdk.idempotency_store.records import ClaimState, Record, StepKey

__all__ = ["ClaimKind", "Claimed", "Claims", "HeldClaim"]

_MOST_UNSURE = 1_000


class ClaimKind(StrEnum):
    """What the holder is to do."""

    RUN = "RUN"
    RESEND = "RESEND"
    CRASH_LOOP = "CRASH_LOOP"


class Claimed(NamedTuple):
    claim: HeldClaim
    kind: ClaimKind


class Claims:
    """What one running service claims. `owner` is new at every start."""

    def __init__(
        self,
        store: DedupStore,
        owner: str,
        clock: WallClock,
        skew: timedelta = MAX_CLOCK_SKEW,
    ) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._skew = skew
        self._numbers = itertools.count(1)
        self._unsure: dict[StepKey, Granted] = {}

    async def claim(
        self,
        key: StepKey,
        *,
        attempt_no: int,
        lease_id: str,
        until: datetime,
        deadline: datetime,
    ) -> Claimed | Refused:
        """One write if nothing is stored. A write of which it is not known whether it happened is
        remembered: if it did, the next call for the same attempt has that claim."""
        number = next(self._numbers)
        wanted = Wanted(attempt_no, lease_id, self._owner, until, deadline, number)
        is_late = is_over(deadline, self._clock.now(), self._skew)
        stored = await self._store.read(key) if is_late else None
        for _ in range(TRIES):
            decision = self._decide(key, stored, wanted)
            if not isinstance(decision, Granted):
                return decision
            claimed = await self._take(key, decision, stored)
            if claimed is not None:
                return claimed
            stored = await self._store.read(key)
        raise StoreUnavailable(about(key, "was never left as it was read"))

    async def adopt(self, key: StepKey, until: datetime) -> Claimed | None:
        """Take a result that `lapsed_results` named, to send it; None if another cares for it."""
        stored = await self._store.read(key)
        if stored is None or not is_free(stored.record, self._clock.now(), self._skew):
            return None
        record = stored.record
        if record.state is not ClaimState.COMPLETED:
            return None
        lease, deadline = record.lease_id, record.deadline
        number = next(self._numbers)
        wanted = Wanted(record.attempt_no, lease, self._owner, until, deadline, number)
        decision = self._decide(key, stored, wanted)
        return await self._take(key, decision, stored) if isinstance(decision, Resend) else None

    def _decide(self, key: StepKey, stored: Stored | None, wanted: Wanted) -> Decision:
        now, record = self._clock.now(), None if stored is None else stored.record
        decision = decide_claim(record, wanted, now, self._skew)
        if record is None or not isinstance(decision, Held):
            return decision
        unsure = self._unsure.get(key)
        if unsure is None or not _is_same_claim(unsure.record, record):
            return decision
        # Nobody else in this process shall find it while it is being taken.
        del self._unsure[key]
        return type(unsure)(renewed(record, wanted.until, wanted.deadline))

    async def _take(self, key: StepKey, decision: Granted, stored: Stored | None) -> Claimed | None:
        expected = None if stored is None else stored.version
        try:
            version = await self._store.write(key, decision.record, expected)
        except Conflict:
            return None
        except (StoreUnavailable, asyncio.CancelledError):
            self._remember(key, decision)
            raise
        self._unsure.pop(key, None)
        written = Stored(decision.record, version)
        claim = HeldClaim(self._store, key, written, self._clock, self._skew)
        return Claimed(claim, _KINDS[type(decision)])

    def _remember(self, key: StepKey, decision: Granted) -> None:
        self._unsure[key] = decision
        if len(self._unsure) > _MOST_UNSURE:
            del self._unsure[next(iter(self._unsure))]


def _is_same_claim(one: Record, other: Record) -> bool:
    return (one.owner, one.claim_no) == (other.owner, other.claim_no)


_KINDS = {
    Run: ClaimKind.RUN,
    Resend: ClaimKind.RESEND,
    CrashLoop: ClaimKind.CRASH_LOOP,
}
