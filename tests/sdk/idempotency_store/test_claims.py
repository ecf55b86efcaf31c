"""Claims: one write each way, and no claim is lost or doubled by a store that fails."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial

import pytest

from lucius_sdk.idempotency_store import (
    Claimed,
    ClaimKind,
    ClaimLost,
    Claims,
    ClaimState,
    DeadlinePassed,
    DedupStore,
    Expired,
    Finished,
    Held,
    HeldClaim,
    MemoryStore,
    Record,
    Refused,
    StoreUnavailable,
    Superseded,
)
from lucius_sdk.testing.clock import FakeClock
from tests.runner.deadlines import DEADLINE
from tests.sdk.idempotency_store.faults import UNKNOWN, Fault, FaultyStore
from tests.sdk.idempotency_store.steps import (
    KEY,
    LEASE,
    LEASE_ID,
    LOCK,
    RESULT,
    SKEW,
    START,
    record,
    result,
)

CLAIMED, ACKED, COMPLETED, REPORTED = ClaimState
first_claim = partial(record, claim_no=1)
LAPSE = (LOCK + SKEW).total_seconds() + 0.001
Pair = tuple[DedupStore, DedupStore]


class Service:
    """A running service, which sees directives of the one step."""

    def __init__(self, store: DedupStore, owner: str, clock: FakeClock) -> None:
        self._clock = clock
        self.claims = Claims(store, owner, clock, SKEW)

    async def sees(self, attempt_no: int = 1, lease_id: str | None = None) -> Claimed | Refused:
        return await self.claims.claim(
            KEY,
            attempt_no=attempt_no,
            lease_id=LEASE_ID.format(attempt_no) if lease_id is None else lease_id,
            until=self._clock.now() + LOCK,
            deadline=START + LEASE,
        )

    async def claims_it(self, attempt_no: int = 1, kind: ClaimKind = ClaimKind.RUN) -> HeldClaim:
        seen = await self.sees(attempt_no)
        assert isinstance(seen, Claimed)
        assert seen.kind is kind
        return seen.claim


@pytest.fixture
def services(stores: Pair, clock: FakeClock) -> tuple[Service, Service]:
    return Service(stores[0], "a", clock), Service(stores[1], "b", clock)


@pytest.fixture
def faulty(clock: FakeClock) -> FaultyStore:
    return FaultyStore(MemoryStore(clock.now))


async def stored(store: DedupStore) -> Record:
    found = await store.read(KEY)
    assert found is not None
    return found.record


async def test_a_claim_is_carried_to_its_end(
    services: tuple[Service, Service], store: DedupStore
) -> None:
    first, second = services
    claim = await first.claims_it()
    assert await stored(store) == first_claim()
    await claim.acked(START + 2 * LEASE)
    assert await stored(store) == first_claim(ACKED, deadline=START + 2 * LEASE)
    await claim.renew(START + 2 * LOCK)
    assert await second.sees() == Held(START + 2 * LOCK)
    assert await claim.complete(RESULT, START) == RESULT
    assert await second.sees() == Held(START + 2 * LOCK)
    await claim.report()
    assert await second.sees() == Finished()
    assert await first.sees() == Finished()
    assert (await stored(store)).result == RESULT


async def test_of_duplicates_delivered_at_once_one_runs(
    services: tuple[Service, Service],
) -> None:
    seen = await asyncio.gather(*(service.sees() for service in services for _ in range(5)))
    assert sum(isinstance(one, Claimed) for one in seen) == 1
    assert sum(one == Held(START + LOCK) for one in seen) == 9


async def test_a_higher_attempt_ends_the_claim_of_a_lower_one(
    services: tuple[Service, Service],
) -> None:
    first, second = services
    old = await first.claims_it(1)
    await second.claims_it(2)
    with pytest.raises(ClaimLost):
        await old.complete(RESULT, START)
    assert not old.is_held
    assert await first.sees(1) == Superseded()
    assert await first.sees(2, lease_id="another") == Superseded()


async def test_of_a_lapsed_claim_the_old_holder_writes_nothing_more(
    services: tuple[Service, Service], store: DedupStore, clock: FakeClock
) -> None:
    first, second = services
    old = await first.claims_it()
    clock.advance(LAPSE)
    new = await second.claims_it()
    assert (new.record.epoch, new.record.takeovers) == (2, 1)
    before = await stored(store)
    for verb in VERBS.values():
        with pytest.raises(ClaimLost):
            await verb(old)
    await old.release()
    assert await stored(store) == before


async def test_who_takes_over_its_own_lapsed_claim_has_lost_the_old_one(
    services: tuple[Service, Service], clock: FakeClock
) -> None:
    """Its run has another folder."""
    old = await services[0].claims_it()
    clock.advance(LAPSE)
    new = await services[0].claims_it()
    assert new.record.epoch == 2
    with pytest.raises(ClaimLost):
        await old.complete(RESULT, clock.now())
    await new.complete(RESULT, clock.now())


async def test_a_claim_that_lapsed_and_that_nobody_took_goes_on(
    services: tuple[Service, Service], clock: FakeClock
) -> None:
    claim = await services[0].claims_it()
    clock.advance(LAPSE)
    await claim.complete(RESULT, clock.now())
    await claim.report()


async def test_a_released_claim_is_taken_over_at_once(
    services: tuple[Service, Service],
) -> None:
    first, second = services
    old = await first.claims_it()
    await old.release()
    assert not old.is_held
    new = await second.claims_it()
    assert (new.record.epoch, new.record.takeovers) == (2, 0)
    await old.release()
    with pytest.raises(ClaimLost):
        await old.renew(START + LEASE)


async def test_a_stored_result_is_sent_by_the_one_who_takes_over(
    services: tuple[Service, Service], clock: FakeClock
) -> None:
    """Also after the deadline, and with the bytes that were stored."""
    first, second = services
    await (await first.claims_it()).complete(RESULT, START)
    clock.advance(2 * LEASE.total_seconds())
    claim = await second.claims_it(kind=ClaimKind.RESEND)
    assert claim.result == RESULT
    await claim.report()
    assert await second.sees() == Finished()


async def test_a_directive_without_time_left_is_expired(
    services: tuple[Service, Service], clock: FakeClock, store: DedupStore
) -> None:
    clock.advance((LEASE + SKEW).total_seconds() + 0.001)
    assert await services[0].sees() == Expired()
    assert await store.read(KEY) is None


async def test_the_third_take_over_is_a_crash_loop(
    services: tuple[Service, Service], clock: FakeClock
) -> None:
    first, second = services
    await first.claims_it()
    for service in (second, first):
        clock.advance(LAPSE)
        await service.claims_it()
    clock.advance(LAPSE)
    claim = await second.claims_it(kind=ClaimKind.CRASH_LOOP)
    await claim.complete(RESULT, clock.now())
    await claim.report()


async def test_no_result_is_stored_after_the_deadline(
    services: tuple[Service, Service], store: DedupStore
) -> None:
    claim = await services[0].claims_it()
    late = START + LEASE + SKEW + timedelta(microseconds=1)
    with pytest.raises(DeadlinePassed):
        await claim.complete(RESULT, late)
    assert (await stored(store)).result is None
    assert claim.is_held
    await claim.complete(RESULT, late, deadline=START + 2 * LEASE)
    assert await stored(store) == first_claim(COMPLETED, deadline=START + 2 * LEASE)


async def test_the_first_result_counts(services: tuple[Service, Service]) -> None:
    claim = await services[0].claims_it()
    assert await claim.complete(RESULT, START) == RESULT
    assert await claim.complete(result("another"), START) == RESULT


async def test_what_comes_after_the_end_changes_nothing(
    services: tuple[Service, Service], store: DedupStore
) -> None:
    """An answer to the ACK, a renewal, the end of the service: each may be late."""
    claim = await services[0].claims_it()
    await claim.complete(RESULT, START)
    await claim.acked(START + 9 * LEASE)
    assert await stored(store) == first_claim(COMPLETED)
    await claim.report()
    await claim.renew(START + 9 * LEASE)
    await claim.report()
    await claim.release()
    assert await stored(store) == first_claim(REPORTED)
    assert claim.is_held


async def test_transitions_at_once_come_one_after_another(
    services: tuple[Service, Service], store: DedupStore
) -> None:
    claim = await services[0].claims_it()
    until = START + 9 * LOCK
    renewals = [claim.renew(START + n * LOCK) for n in (9, 3, 5)]
    await asyncio.gather(*renewals, claim.acked(), claim.complete(RESULT, START), claim.report())
    assert await stored(store) == first_claim(REPORTED, until=until)


async def test_a_result_is_adopted_when_its_holder_is_gone(
    services: tuple[Service, Service], store: DedupStore, clock: FakeClock
) -> None:
    first, second = services
    until = START + 9 * LOCK
    assert await second.claims.adopt(KEY, until) is None
    claim = await first.claims_it()
    await claim.release()
    assert await second.claims.adopt(KEY, until) is None
    claim = await first.claims_it()
    await claim.complete(RESULT, START)
    assert await second.claims.adopt(KEY, until) is None
    assert await first.claims.adopt(KEY, until) is None
    clock.advance(LAPSE)
    assert await store.lapsed_results(clock.now(), 9) == [KEY]
    adopted = await second.claims.adopt(KEY, until)
    assert adopted is not None
    assert adopted.kind is ClaimKind.RESEND
    assert adopted.claim.result == RESULT
    assert await second.claims.adopt(KEY, until) is None
    await adopted.claim.report()
    assert await store.lapsed_results(until + LEASE, 9) == []


async def test_of_many_who_adopt_a_result_one_has_it(
    services: tuple[Service, Service], clock: FakeClock
) -> None:
    claim = await services[0].claims_it()
    await claim.complete(RESULT, START)
    await claim.release()
    until = START + LOCK
    adopted = await asyncio.gather(*(one.claims.adopt(KEY, until) for one in services))
    assert sum(one is not None for one in adopted) == 1


async def test_every_step_of_a_claim_is_one_write(faulty: FaultyStore, clock: FakeClock) -> None:
    claim = await Service(faulty, "a", clock).claims_it()
    await claim.acked()
    await claim.acked()
    await claim.renew(START + LEASE)
    await claim.complete(RESULT, START)
    await claim.report()
    assert (faulty.reads, faulty.writes) == (0, 5)


VERBS: dict[str, Callable[[HeldClaim], Awaitable[object]]] = {
    "acked": lambda claim: claim.acked(),
    "renew": lambda claim: claim.renew(START + LEASE),
    "complete": lambda claim: claim.complete(RESULT, START),
}


@pytest.mark.parametrize("fault", UNKNOWN)
@pytest.mark.parametrize("verb", VERBS)
async def test_after_an_answer_that_was_lost_the_verb_is_repeated(
    faulty: FaultyStore, clock: FakeClock, verb: str, fault: Fault
) -> None:
    claim = await Service(faulty, "a", clock).claims_it()
    faulty.faults.append(fault)
    with pytest.raises(StoreUnavailable):
        await VERBS[verb](claim)
    await VERBS[verb](claim)
    await faulty.land()
    await claim.complete(RESULT, START)
    await claim.report()
    assert (await stored(faulty)).state is REPORTED


@pytest.mark.parametrize("fault", UNKNOWN)
async def test_a_report_and_a_release_are_repeated_too(
    faulty: FaultyStore, clock: FakeClock, fault: Fault
) -> None:
    service = Service(faulty, "a", clock)
    claim = await service.claims_it()
    faulty.faults.append(fault)
    with pytest.raises(StoreUnavailable):
        await claim.release()
    await claim.release()
    await faulty.land()
    assert not claim.is_held
    claim = await service.claims_it()
    await claim.complete(RESULT, START)
    faulty.faults.append(fault)
    with pytest.raises(StoreUnavailable):
        await claim.report()
    await claim.report()
    await faulty.land()
    assert (await stored(faulty)).state is REPORTED


async def test_a_result_that_had_landed_is_the_one_that_is_sent(
    faulty: FaultyStore, clock: FakeClock
) -> None:
    """Also if the deadline has passed since."""
    claim = await Service(faulty, "a", clock).claims_it()
    faulty.faults.append(Fault.LANDED)
    with pytest.raises(StoreUnavailable):
        await claim.complete(RESULT, START)
    late = START + 2 * LEASE
    assert await claim.complete(result("another"), late) == RESULT


async def test_after_an_answer_that_was_lost_a_claim_may_still_be_lost(
    faulty: FaultyStore, clock: FakeClock
) -> None:
    claim = await Service(faulty, "a", clock).claims_it()
    faulty.faults.append(Fault.LANDED)
    with pytest.raises(StoreUnavailable):
        await claim.acked()
    await Service(faulty, "b", clock).claims_it(2)
    with pytest.raises(ClaimLost):
        await claim.complete(RESULT, START)


@pytest.mark.parametrize("fault", UNKNOWN)
@pytest.mark.parametrize("crashes", [0, 1, 3])
async def test_a_claim_whose_answer_was_lost_is_had_when_it_is_asked_for_again(
    faulty: FaultyStore, clock: FakeClock, fault: Fault, crashes: int
) -> None:
    """Once, and as what it was."""
    for number in range(crashes):
        await Service(faulty, str(number), clock).claims_it()
        clock.advance(LAPSE)
    service = Service(faulty, "a", clock)
    faulty.faults.extend([None, fault] if crashes else [fault])
    with pytest.raises(StoreUnavailable):
        await service.sees()
    await faulty.land()
    claim = await service.claims_it(kind=ClaimKind.CRASH_LOOP if crashes == 3 else ClaimKind.RUN)
    assert (claim.record.epoch, claim.record.takeovers) == (crashes + 1, crashes)
    assert isinstance(await service.sees(), Held)
    await claim.complete(RESULT, clock.now())


async def test_a_claim_whose_answer_was_lost_is_not_had_by_another(
    faulty: FaultyStore, clock: FakeClock
) -> None:
    faulty.faults.append(Fault.LANDED)
    service = Service(faulty, "a", clock)
    with pytest.raises(StoreUnavailable):
        await service.sees()
    assert await Service(faulty, "b", clock).sees() == Held(START + LOCK)
    await Service(faulty, "b", clock).claims_it(2)
    assert await service.sees() == Superseded()


async def test_a_claim_that_is_had_is_not_had_again_after_a_duplicate_failed(
    faulty: FaultyStore, clock: FakeClock
) -> None:
    """What the duplicate wanted to write is what the claim had written."""
    service = Service(faulty, "a", clock)
    claim = await service.claims_it()
    for fault in UNKNOWN:
        faulty.faults.append(fault)
        with suppress(StoreUnavailable):
            await service.sees()
        await faulty.land()
        assert isinstance(await service.sees(), Held)
    await claim.complete(RESULT, START)


async def test_of_many_who_ask_again_one_has_the_claim_whose_answer_was_lost(
    services: tuple[Service, Service], stores: Pair, clock: FakeClock
) -> None:
    faulty = FaultyStore(stores[0])
    faulty.faults.append(Fault.LANDED)
    service = Service(faulty, "a", clock)
    with pytest.raises(StoreUnavailable):
        await service.sees()
    seen = await asyncio.gather(*(service.sees() for _ in range(10)))
    assert sum(isinstance(one, Claimed) for one in seen) == 1


async def test_a_claim_whose_answer_was_lost_is_had_by_nobody_while_one_takes_it(
    faulty: FaultyStore, clock: FakeClock
) -> None:
    """Its record is written again by then, and the answer still under way."""
    service = Service(faulty, "a", clock)
    faulty.faults.append(Fault.LANDED)
    with pytest.raises(StoreUnavailable):
        await service.sees()
    faulty.faults.extend([None, Fault.SLOW])
    taking = asyncio.create_task(service.sees())
    async with asyncio.timeout(DEADLINE):
        await faulty.has_landed.wait()
    assert isinstance(await service.sees(), Held)
    faulty.may_answer.set()
    assert isinstance(await taking, Claimed)


async def test_a_claim_that_was_cancelled_is_had_when_it_is_asked_for_again(
    services: tuple[Service, Service],
) -> None:
    first, _ = services
    asking = asyncio.create_task(first.sees())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait([asking])
    if asking.cancelled():
        await first.claims_it()


async def test_a_store_that_is_away_is_no_lost_claim(clock: FakeClock) -> None:
    store = MemoryStore(clock.now)
    service = Service(store, "a", clock)
    claim = await service.claims_it()
    store.go_away()
    for verb in VERBS.values():
        with pytest.raises(StoreUnavailable):
            await verb(claim)
    with pytest.raises(StoreUnavailable):
        await service.sees(2)
    store.come_back()
    await claim.complete(RESULT, START)
    await claim.report()
