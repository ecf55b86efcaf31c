"""Whatever receivers and time do, a queue is what the model says, and so is one restored from its
snapshot or from its records."""

from collections.abc import Sequence

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from servicebus_emulator.broker import (
    Abandon,
    Broker,
    Complete,
    DeadLetter,
    Defer,
    LockLost,
    MessageNotFound,
    SessionLock,
    SessionUnavailable,
)
from tests.emulator.broker.model import LOCK, MOST, WINDOW, Model, Thing
from tests.emulator.broker.world import Note, World
from tests.runner.tiers import examples

TIMES = st.sampled_from([1, 250, 499, 500, 501, 999, 1000, 1001, 2500])
TTLS = st.sampled_from([None, None, 0, 1, 500, 1000, 1500])
DELAYS = st.sampled_from([None, None, 0, 1, 500, 1000])
NAMES = st.sampled_from([f"m{n}" for n in range(12)])
PICKS = st.integers(0, 50)
SESSIONS = st.sampled_from(["a", "b", "C"])


class PlainQueue(RuleBasedStateMachine):
    has_sessions = False

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.model = Model(self.world.clock.now, has_sessions=self.has_sessions)
        self.source = self.world.queue(
            lock_duration=LOCK,
            max_delivery_count=MOST,
            dead_letter_on_expiry=True,
            requires_duplicate_detection=True,
            duplicate_window=WINDOW,
            requires_session=self.has_sessions,
        )
        self.sent: list[str] = []
        self.lost: list[bytes] = []
        self.locks: dict[str, SessionLock] = {}

    @rule(batch=st.lists(st.tuples(NAMES, SESSIONS, TTLS, DELAYS), min_size=1, max_size=5))
    def send(self, batch: Sequence[tuple[str, str, int | None, int | None]]) -> None:
        notes = []
        for name, session, ttl, delay in batch:
            chosen = session if self.has_sessions else None
            when = None if delay is None else self.model.now + delay
            notes.append(Note(name, session_id=chosen, ttl=ttl, scheduled_at=when))
            if self.model.send(name, chosen, ttl, delay):
                self.sent.append(name)
        self.world.send(*notes)
        self.model.advance(0)

    @rule(limit=st.integers(1, 4), session=SESSIONS)
    def take(self, limit: int, session: str) -> None:
        lock = self.locks.get(session)
        if self.has_sessions and lock is None:
            return
        taken = self.source.take(limit, session=lock)
        expected = self.model.take(limit, session if self.has_sessions else None)
        assert [one.sequence_number for one in taken] == [one.number for one in expected]
        for delivery, thing in zip(taken, expected, strict=True):
            assert (delivery.delivery_count, delivery.locked_until) == (thing.count, thing.until)
            thing.token = delivery.token

    @precondition(lambda self: self.model.at("locked"))
    @rule(pick=PICKS, how=st.sampled_from(["complete", "abandon", "defer", "kill", "release"]))
    def settle(self, pick: int, how: str) -> None:
        thing = self._pick("locked", pick)
        if how == "complete":
            self.source.settle(thing.token, Complete())
            self.model.complete(thing)
        elif how == "abandon":
            self.source.settle(thing.token, Abandon())
            self.model.fail(thing, self.model.now)
        elif how == "defer":
            self.source.settle(thing.token, Defer())
            self.model.defer(thing)
        elif how == "kill":
            self.source.settle(thing.token, DeadLetter("Unreadable", "no JSON"))
            self.model.kill(thing)
        else:
            self.source.release(thing.token)
            self.model.give_back(thing, self.model.now)
        self.lost.append(thing.token)

    @precondition(lambda self: not self.has_sessions and self.model.at("locked"))
    @rule(pick=PICKS)
    def renew(self, pick: int) -> None:
        thing = self._pick("locked", pick)
        thing.until = self.source.renew(thing.token)
        assert thing.until == self.model.now + LOCK

    @precondition(lambda self: self.model.at("deferred"))
    @rule(pick=PICKS)
    def take_deferred(self, pick: int) -> None:
        thing = self._pick("deferred", pick)
        lock = None if thing.session is None else self.locks.get(thing.session)
        if self.has_sessions and lock is None:
            return
        if thing.expires_at <= self.model.now:
            with pytest.raises(MessageNotFound):
                self.source.take_deferred([thing.number], session=lock)
            self.model.expire_deferred(thing)
            return
        (delivery,) = self.source.take_deferred([thing.number], session=lock)
        thing.place, thing.token = "locked", delivery.token
        thing.until = self.model.now + LOCK if lock is None else lock.locked_until
        assert (delivery.delivery_count, delivery.locked_until) == (thing.count, thing.until)

    @precondition(lambda self: self.model.at("scheduled"))
    @rule(pick=PICKS)
    def cancel(self, pick: int) -> None:
        thing = self._pick("scheduled", pick)
        self.world.broker.cancel_scheduled("q", [thing.number])
        self.model.complete(thing)

    @rule(milliseconds=TIMES, has_tick=st.booleans())
    def pass_time(self, milliseconds: int, has_tick: bool) -> None:
        tokens = {one.token for one in self.model.at("locked")}
        self.world.clock.advance(milliseconds)
        if has_tick:
            self.world.broker.tick()
        self.model.advance(milliseconds)
        self.lost += tokens - {one.token for one in self.model.at("locked")}
        held = self.model.held
        self.locks = {name: lock for name, lock in self.locks.items() if name in held}

    @precondition(lambda self: self.lost)
    @rule(pick=PICKS)
    def settle_too_late(self, pick: int) -> None:
        with pytest.raises(LockLost):
            self.source.settle(self.lost[pick % len(self.lost)], Complete())

    @invariant()
    def the_queue_is_what_the_model_says(self) -> None:
        seen = self.source.peek(0, 1000)
        assert [one.sequence_number for one in seen] == [one.number for one in self.model.things]
        for peeked, thing in zip(seen, self.model.things, strict=True):
            assert peeked.message.message_id == thing.name
            assert peeked.enqueued_at == thing.enqueued_at
            assert peeked.delivery_count == thing.count
            assert peeked.locked_until == (thing.until if thing.place == "locked" else None)
            assert peeked.state == (2 if thing.place == "scheduled" else thing.is_deferred)

    @invariant()
    def the_dead_are_what_the_model_says(self) -> None:
        dead = self.world.dead(self.source).peek(0, 1000)
        reasons = [one.message.facts.properties["DeadLetterReason"] for one in dead]
        names = [one.message.message_id for one in dead]
        counts = [one.delivery_count for one in dead]
        assert list(zip(names, reasons, counts, strict=True)) == self.model.dead

    @invariant()
    def every_message_is_in_one_place(self) -> None:
        seen = self.source.peek(0, 1000) + self.world.dead(self.source).peek(0, 1000)
        names = [one.message.message_id or "" for one in seen] + self.model.settled
        assert sorted(names) == sorted(self.sent)

    @invariant()
    def the_counts_are_right(self) -> None:
        counts = self.world.broker.counts("q")
        deferred = sum(one.is_deferred for one in self.model.things)
        scheduled = len(self.model.at("scheduled"))
        active = len(self.model.things) - deferred - scheduled
        everything = len(self.model.things) + len(self.model.dead)
        expected = (active, len(self.model.dead), scheduled, deferred, 0, 100 * everything)
        assert counts == expected

    @invariant()
    def it_knows_when_to_tick_next(self) -> None:
        self.world.broker.tick()
        due = self.world.broker.next_due()
        assert due is None or due > self.world.clock.now
        events = [when for when, *_ in self.model._events()]
        assert not events or (due is not None and due <= min(events))

    @invariant()
    def a_restored_broker_is_the_same(self) -> None:
        expected = _content(self.world.broker)
        from_snapshot, from_records = self.world.another(), self.world.another()
        from_snapshot.restore(self.world.broker.snapshot())
        from_records.restore(self.world.records)
        if not self._has_expired_under_lock():
            assert _content(from_snapshot) == _content(from_records) == expected
        for broker in (from_snapshot, from_records):
            self._check_order(broker)

    def _has_expired_under_lock(self) -> bool:
        """Such a message expires at once in a restored broker, where nobody holds it."""
        locked = [one for one in self.model.at("locked") if not one.is_deferred]
        return any(one.expires_at <= self.model.now for one in locked)

    def _check_order(self, broker: Broker) -> None:
        source = broker.source("q")
        for session in {one.session for one in self.model.things}:
            lock = None if session is None else source.accept_session(session)
            taken = [one.sequence_number for one in source.take(1000, session=lock)]
            assert taken == [
                one.number
                for one in self.model.things
                if one.session == session
                and one.place in ("ready", "locked")
                and not one.is_deferred
                and one.expires_at > self.model.now
            ]

    def _pick(self, place: str, pick: int) -> Thing:
        things = self.model.at(place)
        return things[pick % len(things)]


class SessionQueue(PlainQueue):
    has_sessions = True

    @initialize(session=SESSIONS)
    def start(self, session: str) -> None:
        self.accept(session)

    @rule(session=SESSIONS)
    def accept(self, session: str) -> None:
        if session in self.model.held:
            with pytest.raises(SessionUnavailable):
                self.source.accept_session(session.swapcase())
            return
        self._hold(self.source.accept_session(session))

    @rule()
    def accept_next(self) -> None:
        free = {one.session for one in self.model.at("ready")} - self.model.held.keys()
        lock = self.source.accept_session(None)
        assert (lock is None) == (not free)
        if lock is not None:
            assert lock.session_id in free
            self._hold(lock)

    @precondition(lambda self: self.locks)
    @rule(pick=PICKS, how=st.sampled_from(["renew", "release", "set state"]))
    def use_session(self, pick: int, how: str) -> None:
        session = sorted(self.locks)[pick % len(self.locks)]
        lock = self.locks[session]
        if how == "renew":
            lock.renew()
            self.model.extend(session)
        elif how == "set state":
            lock.set_state(b"%d" % pick if pick % 3 else None)
        else:
            del self.locks[session]
            self.lost += [one.token for one in self.model.locked(session)]
            lock.release()
            self.model.free(session, self.model.now, is_lost=False)

    def _hold(self, lock: SessionLock | None) -> None:
        assert lock is not None
        self.locks[lock.session_id] = lock
        self.model.held[lock.session_id] = lock.locked_until
        assert lock.locked_until == self.model.now + LOCK


def _content(broker: Broker) -> list[str]:
    return sorted(map(repr, broker.snapshot()))


RUNS = settings(max_examples=examples(30), stateful_step_count=25, deadline=None)
TestPlainQueue = PlainQueue.TestCase
TestPlainQueue.settings = RUNS
TestSessionQueue = SessionQueue.TestCase
TestSessionQueue.settings = RUNS
