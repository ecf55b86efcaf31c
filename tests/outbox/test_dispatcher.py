"""The dispatcher, as a team that uses it would notice, on both databases."""

import asyncio
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from lucius_outbox import (
    Claimed,
    Delays,
    Dispatcher,
    DispatchSettings,
    Failure,
    InvalidSettings,
    LeaseLost,
    RetryPolicy,
    Store,
    StoreUnavailable,
    Undeliverable,
    one_by_one,
)
from lucius_outbox.sqlite import SqliteStore
from tests.outbox.backends import Backend, Clock, SqliteBackend, commit, message, numbers
from tests.runner.deadlines import DEADLINE

SLOW_POLL = DispatchSettings(
    lease=timedelta(hours=1), poll_interval=timedelta(minutes=10), batch_size=10
)
QUICK = DispatchSettings(
    lease=timedelta(hours=1), poll_interval=timedelta(milliseconds=10), batch_size=10
)
NOW = RetryPolicy(max_attempts=3, backoff=Delays([timedelta(0)]))


class Recorder:
    """A publisher that remembers, and lets a test wait for what it has seen."""

    def __init__(self, answer: Callable[[Claimed], Exception | None] = lambda _: None) -> None:
        self.batches: list[list[int]] = []
        self.claims: list[Claimed] = []
        self._answer = answer
        self._changed = asyncio.Condition()

    async def __call__(self, claims: Sequence[Claimed]) -> Iterable[Failure]:
        async with self._changed:
            self.batches.append(numbers(claims))
            self.claims += claims
            self._changed.notify_all()
        answers = [(claimed, self._answer(claimed)) for claimed in claims]
        return [Failure(claimed, str(error)) for claimed, error in answers if error]

    async def seen(self, count: int) -> list[int]:
        async with asyncio.timeout(DEADLINE), self._changed:
            await self._changed.wait_for(lambda: len(self.claims) >= count)
        return numbers(self.claims)


async def until(condition: Callable[[], Any]) -> None:
    """Awaits what the condition returns, until that is true."""
    async with asyncio.timeout(DEADLINE):
        while not await condition():
            await asyncio.sleep(0.005)


async def statuses(backend: Backend) -> set[str]:
    return {row["status"] for row in await backend.rows()}


def wake(store: Store) -> None:
    """PostgreSQL announces commits by itself; in-process SQLite is told."""
    if isinstance(store, SqliteStore):
        store.wake()


@asynccontextmanager
async def listening(dispatcher: Dispatcher, store: Store) -> AsyncIterator[None]:
    """Inside, the dispatcher waits for wake-ups: its first claims are over."""
    heard = asyncio.Event()
    listen = store.listen

    async def notice(wake: Callable[[], None]) -> None:
        def signal() -> None:
            heard.set()
            wake()

        await listen(signal)

    store.listen = notice  # type: ignore[method-assign]
    async with dispatcher:
        if not isinstance(store, SqliteStore):
            await asyncio.wait_for(heard.wait(), DEADLINE)
        yield


async def test_what_was_committed_before_the_start_is_delivered(backend: Backend) -> None:
    await commit(backend, *map(message, range(25)))
    publish = Recorder()
    async with Dispatcher(backend.store(), publish, SLOW_POLL):
        assert sorted(await publish.seen(25)) == list(range(25))
    assert await statuses(backend) == {"delivered"}
    assert sorted(map(len, publish.batches)) == [5, 10, 10]


async def test_a_commit_wakes_the_dispatcher(backend: Backend) -> None:
    """The poll would come in ten minutes."""
    store, publish = backend.store(), Recorder()
    async with listening(Dispatcher(store, publish, SLOW_POLL), store):
        for number in range(5):
            await commit(backend, message(number))
            wake(store)
            assert await publish.seen(number + 1) == list(range(number + 1))


@asynccontextmanager
async def heard(store: SqliteStore) -> AsyncIterator[asyncio.Queue[None]]:
    """What wakes those who listen to the store."""
    wakes = asyncio.Queue[None]()
    listening = asyncio.create_task(store.listen(lambda: wakes.put_nowait(None)))
    await asyncio.sleep(0)
    yield wakes
    listening.cancel()
    await asyncio.wait([listening])


async def test_a_replay_wakes_the_dispatcher(sqlite_backend: SqliteBackend) -> None:
    await commit(sqlite_backend, message(1))
    store = sqlite_backend.store()
    (claimed,) = await store.claim_batch(1, timedelta(hours=1))
    await store.nack([Failure(claimed, "too large", permanent=True)])
    async with heard(store) as wakes:
        await store.replay([claimed.id], by="ada", reason="it fits now")
        async with asyncio.timeout(DEADLINE):
            await wakes.get()


async def test_who_listens_no_more_is_not_woken(sqlite_backend: SqliteBackend) -> None:
    store = sqlite_backend.store()
    async with heard(store) as wakes:
        store.wake()
        async with asyncio.timeout(DEADLINE):
            await wakes.get()
    store.wake()
    await asyncio.sleep(0)
    assert wakes.empty()


async def test_polling_finds_what_no_commit_announced(backend: Backend) -> None:
    store, publish = backend.store(), Recorder()

    async def deaf(wake: Callable[[], None]) -> None:
        await asyncio.Event().wait()

    store.listen = deaf  # type: ignore[method-assign]
    async with Dispatcher(store, publish, QUICK):
        await commit(backend, message(1))
        assert await publish.seen(1) == [1]


async def test_a_failure_is_tried_again_and_then_delivered(backend: Backend) -> None:
    publish = Recorder(lambda claimed: ConnectionError("no") if claimed.attempts < 3 else None)
    await commit(backend, message(1), message(2))
    async with Dispatcher(backend.store(policy=NOW), publish, QUICK):
        await publish.seen(6)
    rows = await backend.rows()
    assert [(row["status"], row["attempts"], row["last_error"]) for row in rows] == [
        ("delivered", 3, "no")
    ] * 2


async def test_one_failure_does_not_touch_the_rest_of_the_batch(backend: Backend) -> None:
    publish = Recorder(lambda claimed: ValueError("odd") if claimed.payload == {"n": 2} else None)
    await commit(backend, *map(message, range(4)))
    async with Dispatcher(backend.store(policy=NOW), publish, QUICK):
        await until(lambda: _dead(backend, 1))
    assert publish.batches == [[0, 1, 2, 3], [2], [2]]


async def _dead(backend: Backend, count: int) -> bool:
    return [row["status"] for row in await backend.rows()].count("dead") == count


async def test_an_exception_fails_the_whole_batch_and_undeliverable_ends_it(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    tries = 0

    async def publish(claims: Sequence[Claimed]) -> None:
        nonlocal tries
        tries += 1
        raise ConnectionError("gone") if tries == 1 else Undeliverable("too large")

    await commit(backend, message(1), message(2))
    async with Dispatcher(backend.store(policy=NOW), publish, QUICK):
        await until(lambda: _dead(backend, 2))
    assert tries == 2
    rows = await backend.rows()
    assert {row["last_error"] for row in rows} == {"Undeliverable: too large"}
    events = [record.getMessage() for record in caplog.records]
    assert events.count("outbox.failed") == 4
    assert events.count("outbox.dead") == 2


async def test_a_publisher_that_answers_nonsense_fails_its_batch(backend: Backend) -> None:
    async def publish(claims: Sequence[Claimed]) -> Any:
        return [claimed.id for claimed in claims]

    await commit(backend, message(1))
    policy = RetryPolicy(max_attempts=1)
    async with Dispatcher(backend.store(policy=policy), publish, QUICK):
        await until(lambda: _dead(backend, 1))
    (row,) = await backend.rows()
    assert "must return Failures or None" in row["last_error"]


async def test_a_publisher_that_cancels_itself_has_failed(backend: Backend) -> None:
    async def publish(claims: Sequence[Claimed]) -> None:
        raise asyncio.CancelledError

    await commit(backend, message(1))
    policy = RetryPolicy(max_attempts=1)
    async with Dispatcher(backend.store(policy=policy), publish, QUICK):
        await until(lambda: _dead(backend, 1))


async def test_a_publisher_that_takes_too_long_has_failed(backend: Backend) -> None:
    async def publish(claims: Sequence[Claimed]) -> None:
        await asyncio.Event().wait()

    await commit(backend, message(1))
    settings = DispatchSettings(publish_timeout=timedelta(milliseconds=20))
    policy = RetryPolicy(max_attempts=1)
    async with Dispatcher(backend.store(policy=policy), publish, settings):
        await until(lambda: _dead(backend, 1))
    (row,) = await backend.rows()
    assert "not published in 0:00:00.02" in row["last_error"]


async def test_single_messages_are_published_side_by_side_and_fail_alone(
    backend: Backend,
) -> None:
    together = asyncio.Barrier(3)

    async def publish(claimed: Claimed) -> None:
        async with asyncio.timeout(DEADLINE):
            await together.wait()
        if claimed.payload == {"n": 1}:
            raise Undeliverable("no such receiver")

    await commit(backend, *map(message, range(3)))
    async with Dispatcher(backend.store(), one_by_one(publish), QUICK):
        await until(lambda: _dead(backend, 1))
    assert sorted(row["status"] for row in await backend.rows()) == [
        "dead",
        "delivered",
        "delivered",
    ]


async def test_no_more_batches_are_in_flight_than_allowed(backend: Backend) -> None:
    running = most = 0
    full, go_on = asyncio.Event(), asyncio.Event()

    async def publish(claims: Sequence[Claimed]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 2:
            full.set()
        await go_on.wait()
        running -= 1

    await commit(backend, *map(message, range(20)))
    settings = DispatchSettings(batch_size=3, concurrency=2)
    store = backend.store()
    async with Dispatcher(store, publish, settings) as dispatcher:
        await asyncio.wait_for(full.wait(), DEADLINE)
        for _ in range(5):
            dispatcher.wake()
            await store.stats()  # a round trip, in which a claim could be made as well
        claimed = [row["status"] for row in await backend.rows()].count("processing")
        assert claimed == 6
        go_on.set()
        await until(lambda: _all_delivered(backend))
    assert most == 2


async def _all_delivered(backend: Backend) -> bool:
    return await statuses(backend) == {"delivered"}


async def test_the_order_of_a_key_is_kept_while_others_overtake(backend: Backend) -> None:
    publish = Recorder(lambda claimed: OSError("once") if claimed.attempts == 1 else None)
    for number in range(4):
        await commit(backend, message(number, ordering_key="doc"), message(100 + number))
    settings = DispatchSettings(batch_size=4, concurrency=3, poll_interval=QUICK.poll_interval)
    async with Dispatcher(backend.store(policy=NOW), publish, settings):
        await until(lambda: _all_delivered(backend))
    of_key = [numbers([claimed])[0] for claimed in publish.claims if claimed.ordering_key]
    assert of_key == [0, 0, 1, 1, 2, 2, 3, 3]


async def test_the_next_of_a_key_does_not_wait_for_the_poll(backend: Backend) -> None:
    await commit(backend, *(message(number, ordering_key="doc") for number in range(5)))
    publish = Recorder()
    settings = DispatchSettings(
        concurrency=1, lease=SLOW_POLL.lease, poll_interval=SLOW_POLL.poll_interval
    )
    async with Dispatcher(backend.store(), publish, settings):
        assert await publish.seen(5) == list(range(5))


async def test_a_lease_is_extended_as_long_as_publishing_takes(
    backend: Backend, clock: Clock
) -> None:
    store, other = backend.store(clock), backend.store(clock)
    extended = asyncio.Event()
    extend = store.extend
    times = 0

    async def noticing(claims: Sequence[Claimed], lease: timedelta) -> None:
        nonlocal times
        await extend(claims, lease)
        clock.now += lease / 3
        times += 1
        if times == 4:  # more than a whole lease since the claim
            extended.set()

    store.extend = noticing  # type: ignore[method-assign]
    publishing = asyncio.Event()

    async def publish(claims: Sequence[Claimed]) -> None:
        publishing.set()
        await extended.wait()
        assert await other.claim_batch(10, timedelta(seconds=1)) == []

    await commit(backend, message(1))
    settings = DispatchSettings(
        lease=timedelta(milliseconds=300), poll_interval=timedelta(milliseconds=100)
    )
    async with asyncio.timeout(DEADLINE), Dispatcher(store, publish, settings):
        await publishing.wait()
        await until(lambda: _all_delivered(backend))
    (row,) = await backend.rows()
    assert (row["attempts"], row["reclaims"]) == (1, 0)


async def test_a_lost_lease_is_logged_and_is_not_a_failure_of_the_publish(
    backend: Backend, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store, thief = backend.store(clock), backend.store(clock)
    stolen: list[Claimed] = []

    async def publish(claims: Sequence[Claimed]) -> None:
        clock.advance(hours=2)
        stolen.extend(await thief.claim_batch(10, timedelta(hours=1)))

    async def no_nack(failures: Sequence[Failure]) -> Any:
        raise AssertionError("a lost lease was treated as a failure")

    store.nack = no_nack  # type: ignore[method-assign]
    await commit(backend, message(1))
    async with Dispatcher(store, publish, SLOW_POLL):
        await until(lambda: _logged(caplog, "outbox.lease_lost"))
    (row,) = await backend.rows()
    assert (row["status"], row["locked_by"]) == ("processing", thief.worker_id)
    await thief.ack(stolen)


async def _logged(caplog: pytest.LogCaptureFixture, event: str) -> bool:
    return event in [record.getMessage() for record in caplog.records]


async def test_a_lease_lost_while_publishing_is_noticed(
    sqlite_backend: SqliteBackend, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store = sqlite_backend.store(clock)

    async def lost(claims: Sequence[Claimed], lease: timedelta) -> None:
        raise LeaseLost("extend", [claimed.id for claimed in claims] + ["settled-meanwhile"])

    store.extend = lost  # type: ignore[method-assign]

    async def publish(claims: Sequence[Claimed]) -> None:
        await until(lambda: _logged(caplog, "outbox.lease_lost"))

    await commit(sqlite_backend, message(1))
    settings = DispatchSettings(
        lease=timedelta(milliseconds=60), poll_interval=timedelta(milliseconds=20)
    )
    async with Dispatcher(store, publish, settings):
        await until(lambda: _logged(caplog, "outbox.lease_lost"))
    (record,) = [r for r in caplog.records if r.getMessage() == "outbox.lease_lost"][:1]
    assert len(record.ids) == 1  # type: ignore[attr-defined]


async def test_an_extension_that_fails_is_tried_again(
    sqlite_backend: SqliteBackend, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store = sqlite_backend.store(clock)
    extend, extended = store.extend, asyncio.Event()

    async def noticing(claims: Sequence[Claimed], lease: timedelta) -> None:
        await extend(claims, lease)
        extended.set()

    store.extend = _failing(noticing, 2)  # type: ignore[method-assign]

    async def publish(claims: Sequence[Claimed]) -> None:
        await asyncio.wait_for(extended.wait(), DEADLINE)

    await commit(sqlite_backend, message(1))
    settings = DispatchSettings(
        lease=timedelta(milliseconds=300), poll_interval=timedelta(milliseconds=20)
    )
    async with Dispatcher(store, publish, settings):
        await until(lambda: _all_delivered(sqlite_backend))
    assert await _logged(caplog, "outbox.store_failed")


async def test_a_row_that_is_settled_while_it_is_extended_is_not_lost(
    sqlite_backend: SqliteBackend, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    store = sqlite_backend.store(clock)
    extend, extending, settled = store.extend, asyncio.Event(), asyncio.Event()
    refused: list[LeaseLost] = []

    async def late(claims: Sequence[Claimed], lease: timedelta) -> None:
        extending.set()
        await settled.wait()
        try:
            await extend(claims, lease)
        except LeaseLost as error:
            refused.append(error)
            raise

    async def publish(claims: Sequence[Claimed]) -> None:
        await asyncio.wait_for(extending.wait(), DEADLINE)

    async def was_refused() -> bool:
        return bool(refused)

    store.extend = late  # type: ignore[method-assign]
    await commit(sqlite_backend, message(1))
    settings = DispatchSettings(
        lease=timedelta(milliseconds=60), poll_interval=timedelta(milliseconds=20)
    )
    async with Dispatcher(store, publish, settings):
        await until(lambda: _all_delivered(sqlite_backend))
        settled.set()
        await until(was_refused)
    assert not await _logged(caplog, "outbox.lease_lost")


async def test_a_stop_finishes_what_is_being_published(backend: Backend) -> None:
    publishing, go_on = asyncio.Event(), asyncio.Event()

    async def publish(claims: Sequence[Claimed]) -> None:
        publishing.set()
        await go_on.wait()

    await commit(backend, message(1))
    dispatcher = Dispatcher(backend.store(), publish, DispatchSettings(concurrency=1))
    running = asyncio.create_task(dispatcher.run())
    await asyncio.wait_for(publishing.wait(), DEADLINE)
    await commit(backend, message(2))
    stops = [asyncio.create_task(dispatcher.stop()) for _ in range(2)]
    await asyncio.sleep(0)
    assert not any(stop.done() for stop in stops)
    go_on.set()
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(running, *stops)
    assert [row["status"] for row in await backend.rows()] == ["delivered", "pending"]
    await dispatcher.stop()


async def test_a_stop_releases_what_it_cannot_finish(backend: Backend) -> None:
    publishing = asyncio.Event()

    async def publish(claims: Sequence[Claimed]) -> None:
        publishing.set()
        await asyncio.Event().wait()

    await commit(backend, message(1), message(2))
    settings = DispatchSettings(batch_size=1, concurrency=1, grace=timedelta(0))
    async with Dispatcher(backend.store(), publish, settings) as dispatcher:
        await asyncio.wait_for(publishing.wait(), DEADLINE)
        await dispatcher.stop()
    rows = await backend.rows()
    assert [(row["status"], row["attempts"]) for row in rows] == [("pending", 0)] * 2
    assert numbers(await backend.store().claim_batch(10, timedelta(seconds=1))) == [1, 2]


async def test_a_cancelled_dispatcher_releases_too(backend: Backend) -> None:
    publishing = asyncio.Event()

    async def publish(claims: Sequence[Claimed]) -> None:
        publishing.set()
        await asyncio.Event().wait()

    await commit(backend, message(1))
    running = asyncio.create_task(Dispatcher(backend.store(), publish, SLOW_POLL).run())
    await asyncio.wait_for(publishing.wait(), DEADLINE)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await statuses(backend) == {"pending"}


async def test_a_swallowed_cancellation_is_repeated(backend: Backend) -> None:
    """Drivers swallow one now and then, before Python 3.12: see `Dispatcher._end`."""
    store = backend.store()
    publishing = asyncio.Event()

    async def stubborn() -> None:
        for _ in range(2):
            try:
                publishing.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                pass
        await asyncio.Event().wait()

    async def listen(wake: Callable[[], None]) -> None:
        await stubborn()

    async def publish(claims: Sequence[Claimed]) -> None:
        await stubborn()

    store.listen = listen  # type: ignore[method-assign]
    await commit(backend, message(1))
    settings = DispatchSettings(grace=timedelta(0))
    async with asyncio.timeout(DEADLINE), Dispatcher(store, publish, settings):
        await publishing.wait()
    assert await statuses(backend) == {"pending"}


async def test_a_dispatcher_whose_claim_swallowed_its_cancellation_ends_all_the_same(
    backend: Backend,
) -> None:
    store = backend.store()
    claiming = asyncio.Event()

    async def claim(size: int, lease: timedelta) -> list[Claimed]:
        try:
            claiming.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass
        return []

    store.claim_batch = claim  # type: ignore[method-assign]
    running = asyncio.create_task(Dispatcher(store, Recorder(), SLOW_POLL).run())
    await asyncio.wait_for(claiming.wait(), DEADLINE)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, DEADLINE)


async def test_a_dispatcher_that_is_cancelled_while_it_claims_does_not_go_on(
    backend: Backend,
) -> None:
    store = backend.store()
    claims = 0

    async def claim(size: int, lease: timedelta) -> list[Claimed]:
        nonlocal claims
        claims += 1
        running.cancel()
        return []

    store.claim_batch = claim  # type: ignore[method-assign]
    running = asyncio.create_task(Dispatcher(store, Recorder(), SLOW_POLL).run())
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(running, DEADLINE)
    assert claims == 1


async def test_a_dispatcher_that_was_never_started_is_stopped(backend: Backend) -> None:
    dispatcher = Dispatcher(backend.store(), Recorder(), SLOW_POLL)
    await dispatcher.stop()
    await dispatcher.run()  # returns at once


async def test_a_database_that_fails_for_a_while_stops_nothing(
    backend: Backend, caplog: pytest.LogCaptureFixture
) -> None:
    """Each verb fails twice; nothing is published a second time because an ack had failed."""
    store = backend.store(policy=NOW)
    for verb in ("claim_batch", "ack", "nack", "stats"):
        setattr(store, verb, _failing(getattr(store, verb), 2))
    publish = Recorder(lambda claimed: OSError("once") if claimed.attempts == 1 else None)
    await commit(backend, message(1))
    async with Dispatcher(store, publish, QUICK):
        await until(lambda: _all_delivered(backend))
    assert publish.batches == [[1], [1]]
    failed = [r.verb for r in caplog.records if r.getMessage() == "outbox.store_failed"]  # type: ignore[attr-defined]
    assert sorted(set(failed)) == ["ack", "claim", "housekeeping", "nack"]


def _failing(verb: Callable[..., Any], times: int) -> Callable[..., Any]:
    left = times

    async def flaky(*args: Any, **options: Any) -> Any:
        nonlocal left
        if left:
            left -= 1
            raise StoreUnavailable("the database is away")
        return await verb(*args, **options)

    return flaky


async def test_an_ack_that_stays_impossible_is_left_to_the_lease(
    sqlite_backend: SqliteBackend, clock: Clock
) -> None:
    store, publish = sqlite_backend.store(clock), Recorder()
    settings = DispatchSettings(
        lease=timedelta(milliseconds=120), poll_interval=timedelta(milliseconds=20)
    )
    ack = store.ack
    first: list[Sequence[Claimed]] = []

    async def impossible_at_first(claims: Sequence[Claimed]) -> Any:
        first.append(claims)
        if claims is not first[0]:
            return await ack(claims)
        clock.now += settings.lease / 2
        raise StoreUnavailable("the database is away")

    store.ack = impossible_at_first  # type: ignore[method-assign]
    await commit(sqlite_backend, message(1))
    async with Dispatcher(store, publish, settings):
        await until(lambda: _all_delivered(sqlite_backend))
    assert set(publish.batches[0]) == {1}
    assert len(publish.batches) > 1
    (row,) = await sqlite_backend.rows()
    assert row["reclaims"] >= 1


async def test_housekeeping_sweeps_and_prunes(
    backend: Backend, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store = backend.store(clock, policy=RetryPolicy(max_reclaims=0))
    await commit(backend, message(1), message(2))
    claims = await store.claim_batch(2, timedelta(seconds=1))
    await store.ack(claims[:1])
    clock.advance(days=8)
    async with Dispatcher(store, Recorder(), SLOW_POLL):
        await until(lambda: _logged(caplog, "outbox.pruned"))
    assert await statuses(backend) == {"dead"}


async def test_housekeeping_keeps_delivered_rows_for_as_long_as_it_is_told_to(
    backend: Backend, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    store = backend.store(clock)
    for key in ("old", "young"):
        clock.advance(hours=1)
        await commit(backend, message(dedupe_key=key))
        await store.ack(await store.claim_batch(1, timedelta(seconds=1)))
    settings = replace(SLOW_POLL, retention=timedelta(hours=1))
    clock.advance(hours=1)
    async with Dispatcher(store, Recorder(), settings):
        await until(lambda: _logged(caplog, "outbox.pruned"))
    assert [row["dedupe_key"] for row in await backend.rows()] == ["young"]


async def test_without_retention_nothing_is_pruned(backend: Backend, clock: Clock) -> None:
    store = backend.store(clock)
    await commit(backend, message(1))
    await store.ack(await store.claim_batch(1, timedelta(seconds=1)))
    clock.advance(days=1000)
    settings = DispatchSettings(retention=None, housekeeping_interval=timedelta(milliseconds=1))
    begun, tidied = itertools.count(1), asyncio.Event()
    stats = store.stats

    async def noticing(**options: bool) -> Any:
        if next(begun) > 1:
            tidied.set()  # the first round is over, whatever it did after this
        return await stats(**options)

    store.stats = noticing  # type: ignore[method-assign]
    async with Dispatcher(store, Recorder(), settings):
        await asyncio.wait_for(tidied.wait(), DEADLINE)
    assert await statuses(backend) == {"delivered"}


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"poll_interval": timedelta(seconds=10, microseconds=1)}, "third of the lease"),
        ({"poll_interval": timedelta(0)}, "above zero"),
        ({"batch_size": 0}, "at least 1"),
        ({"concurrency": 0}, "at least 1"),
        ({"lease": timedelta(0)}, "above zero"),
        ({"publish_timeout": timedelta(0)}, "above zero"),
        ({"housekeeping_interval": timedelta(0)}, "above zero"),
        ({"grace": timedelta(seconds=-1)}, "below zero"),
        ({"retention": timedelta(seconds=-1)}, "below zero"),
    ],
)
def test_settings_that_cannot_work_are_refused(fields: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidSettings, match=complaint):
        DispatchSettings(**fields)


def test_a_third_of_the_lease_is_still_allowed() -> None:
    assert DispatchSettings(poll_interval=timedelta(seconds=10)).lease == timedelta(seconds=30)
