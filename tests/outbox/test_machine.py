"""Random histories, compared step by step with a model that fits on one screen."""

import asyncio
import itertools
import tempfile
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from lucius_outbox import Claimed, Delays, Failure, LeaseLost, RetryPolicy, Status, Store
from tests.names import unique
from tests.outbox.backends import (
    Backend,
    Clock,
    PostgresBackend,
    SqliteBackend,
    commit,
    message,
)
from tests.runner.tiers import examples

T = TypeVar("T")
LEASE = timedelta(seconds=30)
POLICY = RetryPolicy(max_attempts=2, backoff=Delays([timedelta(seconds=20)]), max_reclaims=2)
WORKERS = 3


@dataclass
class Row:
    """What the specification says about one row."""

    number: int
    key: str | None
    due: datetime
    status: Status = Status.PENDING
    attempts: int = 0
    reclaims: int = 0
    holder: tuple[int, int] | None = None  # worker, claim
    until: datetime | None = None

    @property
    def is_live(self) -> bool:
        return self.status in (Status.PENDING, Status.PROCESSING)

    def is_expired(self, now: datetime) -> bool:
        return self.status is Status.PROCESSING and self.until is not None and self.until < now

    def end(self, status: Status) -> None:
        self.status, self.holder, self.until = status, None, None


class Machine(RuleBasedStateMachine):
    open_backend: Callable[[], Coroutine[Any, Any, Backend]]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.clock = Clock()
        self.rows: list[Row] = []
        self.claims: list[tuple[int, int, list[Claimed]]] = []
        self.claim_count = itertools.count(1)

    @initialize()
    def start(self) -> None:
        self.backend = self.run(type(self).open_backend())
        self.stores: list[Store] = [
            self.backend.store(self.clock, policy=POLICY) for _ in range(WORKERS)
        ]

    def teardown(self) -> None:
        if hasattr(self, "backend"):
            self.run(self.backend.close())
        self.runner.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def model(self, claimed: Claimed) -> Row:
        row: Row = self.rows[claimed.payload["n"]]
        return row

    def claimable(self) -> list[Row]:
        """In the order in which a claim gives them, if it gives all."""
        now = self.clock.now
        expired = [r for r in self.rows if r.is_expired(now) and r.reclaims < POLICY.max_reclaims]
        due = [
            r
            for r in self.rows
            if r.status is Status.PENDING
            and r.due <= now
            and r.attempts < POLICY.max_attempts
            and not any(
                e.is_live for e in self.rows[: r.number] if r.key is not None and e.key == r.key
            )
        ]
        return expired + due

    @rule(keys=st.lists(st.sampled_from([None, "a", "b"]), min_size=1, max_size=4))
    def enqueue(self, keys: list[str | None]) -> None:
        first = len(self.rows)
        for number, key in enumerate(keys, start=first):
            self.rows.append(Row(number, key, self.clock.now))
        self.run(
            commit(
                self.backend,
                *(
                    message(row.number, ordering_key=row.key, not_before=row.due)
                    for row in self.rows[first:]
                ),
            )
        )

    @rule(worker=st.integers(0, WORKERS - 1), size=st.integers(1, 5))
    def claim(self, worker: int, size: int) -> None:
        expected = self.claimable()
        claims = self.run(self.stores[worker].claim_batch(size, LEASE))
        taken = [self.model(claimed) for claimed in claims]
        assert all(any(row is one for one in expected) for row in taken)
        if size >= len(self.rows):
            assert len(taken) == len(expected)
        assert bool(taken) == bool(expected)
        assert taken == sorted(taken, key=lambda row: (row.due, row.number))
        number = next(self.claim_count)
        for row, claimed in zip(taken, claims, strict=True):
            assert row.holder is None or row.is_expired(self.clock.now)
            if row.status is Status.PENDING:
                row.attempts += 1
            else:
                row.reclaims += 1
            row.status, row.holder = Status.PROCESSING, (worker, number)
            row.until = self.clock.now + LEASE
            assert (claimed.attempts, claimed.reclaims) == (row.attempts, row.reclaims)
        if claims:
            self.claims.append((worker, number, claims))

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), verb=st.sampled_from(["ack", "nack", "die", "release", "extend"]))
    def settle(self, data: st.DataObject, verb: str) -> None:
        worker, number, claims = data.draw(st.sampled_from(self.claims))
        held = [self.model(c) for c in claims if self.model(c).holder == (worker, number)]
        store = self.stores[worker]
        work: Coroutine[Any, Any, Any]
        match verb:
            case "nack" | "die":
                work = store.nack([Failure(c, "no", permanent=verb == "die") for c in claims])
            case "extend":
                work = store.extend(claims, LEASE)
            case _:
                work = getattr(store, verb)(claims)
        lost = {c.id for c in claims if self.model(c).holder != (worker, number)}
        if lost:
            with pytest.raises(LeaseLost) as refusal:
                self.run(work)
            assert set(refusal.value.ids) == lost
        else:
            self.run(work)
        for row in held:
            self.settled(row, verb)

    def settled(self, row: Row, verb: str) -> None:
        match verb:
            case "ack":
                row.end(Status.DELIVERED)
            case "extend":
                row.until = self.clock.now + LEASE
            case "release":
                row.end(Status.PENDING)
                row.attempts -= 1
            case "nack" if row.attempts < POLICY.max_attempts:
                row.end(Status.PENDING)
                row.due = self.clock.now + timedelta(seconds=20)
            case _:
                row.end(Status.DEAD)

    @rule(seconds=st.sampled_from([1, 20, 31]))
    def wait(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @rule()
    def sweep(self) -> None:
        buried = self.run(self.stores[0].sweep_dead())
        spent = [
            row
            for row in self.rows
            if row.is_expired(self.clock.now) and row.reclaims >= POLICY.max_reclaims
        ]
        assert len(buried.dead) == len(spent)
        for row in spent:
            row.end(Status.DEAD)

    @precondition(lambda self: any(row.status is Status.DEAD for row in self.rows))
    @rule(data=st.data())
    def replay(self, data: st.DataObject) -> None:
        dead = self.run(self.stores[0].dead())
        chosen = data.draw(st.sampled_from(dead))
        assert self.run(self.stores[0].replay([chosen.id], by="ada", reason="test")) == 1
        row = self.rows[chosen.payload["n"]]
        row.status, row.attempts, row.reclaims = Status.PENDING, 0, 0
        row.due = self.clock.now

    @invariant()
    def the_rows_are_those_of_the_model(self) -> None:
        if not hasattr(self, "backend"):
            return
        stored = self.run(self.backend.rows())
        assert [(r["status"], r["attempts"], r["reclaims"]) for r in stored] == [
            (row.status, row.attempts, row.reclaims) for row in self.rows
        ]
        assert [r["locked_until"] for r in stored] == [row.until for row in self.rows]

    @invariant()
    def nothing_is_stuck(self) -> None:
        """A live row whose turn it is is never set aside."""
        if not hasattr(self, "backend"):
            return
        heads: dict[str, Row] = {}
        for row in self.rows:
            if row.is_live and row.key is not None:
                heads.setdefault(row.key, row)
        stored = self.run(self.backend.rows())
        assert not [row.number for row in heads.values() if stored[row.number]["waiting"]]


def play(open_backend: Callable[[], Coroutine[Any, Any, Backend]], in_full: int) -> None:
    machine = type("OutboxMachine", (Machine,), {"open_backend": staticmethod(open_backend)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples(in_full),
            stateful_step_count=30,
            suppress_health_check=list(HealthCheck),
        ),
    )


def test_random_histories_on_sqlite() -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = itertools.count(1)

        async def open_backend() -> Backend:
            place = Path(folder, str(next(names)))
            place.mkdir()
            return SqliteBackend(place)

        play(open_backend, 60)


def test_random_histories_on_postgres(postgres_uri: str) -> None:
    async def open_backend() -> Backend:
        backend = PostgresBackend(postgres_uri, unique("machine"))
        await backend.open()
        return backend

    play(open_backend, 25)
