"""Any history of services that claim, work, fall silent and die keeps the promises.

No attempt is run twice in one epoch; all results of an attempt that are sent are the same; what was
reported never changes; attempts and epochs only grow.
"""

import asyncio
from collections.abc import Awaitable
from datetime import timedelta
from typing import TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from lucius_sdk.idempotency_store import (
    Claimed,
    ClaimKind,
    ClaimLost,
    Claims,
    ClaimState,
    DeadlinePassed,
    HeldClaim,
    MemoryStore,
    Record,
    StoreUnavailable,
)
from lucius_sdk.testing.clock import FakeClock
from tests.runner.tiers import examples
from tests.sdk.idempotency_store.faults import UNKNOWN, Fault, FaultyStore
from tests.sdk.idempotency_store.steps import KEY, LEASE_ID, LOCK, SKEW, START, result

T = TypeVar("T")
SERVICES = st.sampled_from(["a", "b", "c"])
FAULTS = st.sampled_from([None, None, None, *UNKNOWN])
EXPECTED = (ClaimLost, DeadlinePassed, StoreUnavailable)


class History(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.Runner()
        self.clock = FakeClock(START)
        self.store = FaultyStore(MemoryStore(self.clock.now))
        self.starts = 0
        self.claims: dict[str, Claims] = {}
        self.held: list[tuple[str, HeldClaim]] = []
        self.runs: set[tuple[int, int]] = set()
        self.crash_loops: set[int] = set()
        self.sent: dict[int, bytes] = {}
        self.last: Record | None = None

    def teardown(self) -> None:
        self.loop.close()

    @rule(service=SERVICES, attempt_no=st.integers(1, 3), fault=FAULTS, lease=st.integers(0, 9))
    def sees(self, service: str, attempt_no: int, fault: Fault | None, lease: int) -> None:
        lease_id = LEASE_ID.format(attempt_no) if lease else "another"
        self.store.faults.append(fault)
        seeing = self._claims(service).claim(
            KEY,
            attempt_no=attempt_no,
            lease_id=lease_id,
            until=self.clock.now() + LOCK,
            deadline=START + attempt_no * timedelta(minutes=10),
        )
        try:
            seen = self.loop.run(_awaited(seeing))
        except StoreUnavailable:
            return
        finally:
            self.store.faults.clear()
        if isinstance(seen, Claimed):
            self._has(service, seen)

    @precondition(lambda self: self.held)
    @rule(
        data=st.data(),
        verb=st.sampled_from(["ack", "renew", "complete", "complete", "report", "release"]),
        fault=FAULTS,
    )
    def moves(self, data: st.DataObject, verb: str, fault: Fault | None) -> None:
        _, claim = data.draw(st.sampled_from(self.held))
        if verb == "report" and claim.result is None:
            return
        self.store.faults.append(fault)
        try:
            self.loop.run(self._move(claim, verb))
        except EXPECTED:
            return
        finally:
            self.store.faults.clear()

    @rule(seconds=st.sampled_from([1, 30, 63, 63, 63, 400]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(service=SERVICES)
    def dies(self, service: str) -> None:
        self.claims.pop(service, None)
        self.held = [(owner, claim) for owner, claim in self.held if owner != service]

    @rule()
    def what_was_late_lands(self) -> None:
        self.loop.run(self.store.land())

    @rule(service=SERVICES)
    def adopts(self, service: str) -> None:
        until = self.clock.now() + LOCK
        adopted = self.loop.run(_awaited(self._claims(service).adopt(KEY, until)))
        if adopted is not None:
            assert adopted.kind is ClaimKind.RESEND
            self._has(service, adopted)

    @invariant()
    def nothing_goes_back(self) -> None:
        stored = self.loop.run(_awaited(self.store.read(KEY)))
        record = None if stored is None else stored.record
        if self.last is not None:
            assert record is not None
            before = self.last.attempt_no, self.last.epoch
            assert (record.attempt_no, record.epoch) >= before
            if record.attempt_no == self.last.attempt_no:
                self._same_attempt_grows(self.last, record)
        self.last = record

    @staticmethod
    def _same_attempt_grows(before: Record, now: Record) -> None:
        assert now.lease_id == before.lease_id
        assert now.deadline >= before.deadline
        assert now.takeovers >= before.takeovers
        if before.result is not None:
            assert now.result == before.result
        if before.state is ClaimState.REPORTED:
            assert now == before

    def _has(self, service: str, seen: Claimed) -> None:
        record = seen.claim.record
        run = record.attempt_no, record.epoch
        if seen.kind is ClaimKind.RUN:
            assert run not in self.runs
            assert record.attempt_no not in self.crash_loops
            assert record.attempt_no not in self.sent
            self.runs.add(run)
        elif seen.kind is ClaimKind.CRASH_LOOP:
            self.crash_loops.add(record.attempt_no)
        else:
            assert seen.claim.result is not None
            self._sends(record.attempt_no, seen.claim.result.body)
        self.held.append((service, seen.claim))

    async def _move(self, claim: HeldClaim, verb: str) -> None:
        now = self.clock.now()
        if verb == "ack":
            await claim.acked(now + LOCK)
        elif verb == "renew":
            await claim.renew(now + LOCK)
        elif verb == "report":
            await claim.report()
        elif verb == "release":
            await claim.release()
        else:
            self.starts += 1
            sent = await claim.complete(result(f"result {self.starts}"), now)
            self._sends(claim.record.attempt_no, sent.body)

    def _sends(self, attempt_no: int, body: bytes) -> None:
        assert self.sent.setdefault(attempt_no, body) == body

    def _claims(self, service: str) -> Claims:
        if service not in self.claims:
            self.starts += 1
            owner = f"{service}{self.starts}"
            self.claims[service] = Claims(self.store, owner, self.clock, SKEW)
        return self.claims[service]


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=examples(60), stateful_step_count=40)
