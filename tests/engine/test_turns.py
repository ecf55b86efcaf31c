"""Turns as a ledger asks for them: room, modes, weights, lanes, probes, backlogs."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from lucius_contract.routing import Mode, lane_of
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.engine.service_load import Instance, Seen
from lucius_orchestrator.engine.traffic import Traffic
from lucius_orchestrator.outbox.turns import FairTurns
from lucius_orchestrator.ports.ledger import Queue
from tests.engine.plane import Plane, request
from tests.ledger.backends import Clock

DEFAULT, BURST = Mode.DEFAULT, Mode.BURST


def queues(*tenants: str, mode: Mode = DEFAULT) -> list[Queue]:
    return [Queue("ocr", mode, tenant) for tenant in tenants]


class Desk:
    def __init__(
        self, room: int, batch: int = 100, share: float = 0.5, lane_limit: int = 1000
    ) -> None:
        self.clock = Clock()
        self.traffic = Traffic(self.clock, Limits(room, 1000), lane_limit)
        weights = {"heavy": 3}
        self.turns = FairTurns(self.traffic, batch, lambda each: weights.get(each, 1), share)

    def look(self, waiting: Sequence[Queue]) -> dict[str, int]:
        assert self.turns.room("ocr")
        shares = self.turns.allot("ocr", waiting)
        self.turns.settle([])
        return {f"{queue.tenant_id}": count for queue, count in shares.items()}


def test_room_is_divided_among_tenants() -> None:
    assert Desk(room=6).look(queues("a", "b", "c")) == {"a": 2, "b": 2, "c": 2}


def test_a_batch_bounds_what_a_service_gets_in_a_look() -> None:
    assert Desk(room=600, batch=4).look(queues("a", "b")) == {"a": 2, "b": 2}


def test_the_next_look_goes_on_behind_the_last_queue() -> None:
    desk = Desk(room=2)
    assert desk.turns.last("ocr", DEFAULT) is None
    assert desk.look(queues("a", "b")) == {"a": 1, "b": 1}
    assert desk.turns.last("ocr", DEFAULT) == Queue("ocr", DEFAULT, "b")
    assert desk.turns.last("ocr", BURST) is None
    assert desk.turns.last("sis", DEFAULT) is None


def test_weights_count() -> None:
    assert Desk(room=8).look(queues("heavy", "light")) == {"heavy": 6, "light": 2}


def test_burst_gets_its_share_while_default_waits() -> None:
    waiting = [*queues("a"), *queues("b", mode=BURST)]
    assert Desk(room=10, share=0.3).look(waiting) == {"a": 7, "b": 3}
    assert Desk(room=10, share=0.3).look(queues("b", mode=BURST)) == {"b": 10}
    single = Desk(room=1, share=0.5)
    assert [list(single.look(waiting)) for _ in range(4)] == [["a"], ["b"], ["a"], ["b"]]


def test_a_tenant_whose_lane_is_full_is_passed_over() -> None:
    desk = Desk(room=10, lane_limit=1)
    desk.traffic.claimed("job_1", "step_01", "ocr", lane_of("acme"))
    waiting = [*queues("Acme ", "b"), *queues("acme", mode=BURST)]
    assert lane_of("b") != lane_of("acme")
    assert set(desk.look(waiting)) == {"b", "acme"}


def test_rows_of_an_older_release_have_room() -> None:
    assert Desk(room=1, batch=7).turns.room("") == 7


async def test_a_service_without_room_has_a_backlog(plane: Plane) -> None:
    desk = Desk(room=2)
    for number in range(3):
        await plane.submit(request(idempotency_key=f"k-{number}"))
    claims = await plane.ledger.claim_in_turn(desk.turns, timedelta(seconds=30))
    assert len(claims) == 2
    assert desk.turns.settle(claims) == []
    assert desk.traffic.with_backlog() == ["ocr"]
    for claim in claims:
        desk.traffic.claimed(claim.job_id, "step_01", "ocr", 1)
    assert await plane.ledger.claim_in_turn(desk.turns, timedelta(seconds=30)) == []
    desk.turns.settle([])
    assert desk.traffic.with_backlog() == ["ocr"]
    for claim in claims:
        desk.traffic.unpublished(claim.job_id, "step_01")
    (last,) = await plane.ledger.claim_in_turn(desk.turns, timedelta(seconds=30))
    desk.turns.settle([last])
    assert desk.traffic.with_backlog() == []


async def test_what_a_dead_dispatcher_held_waits_for_room_too(plane: Plane) -> None:
    desk, lease = Desk(room=2), timedelta(seconds=30)
    for number in range(5):
        await plane.submit(request(idempotency_key=f"k-{number}"))
    assert len(await plane.ledger.claim_in_turn(Desk(room=9).turns, lease)) == 5
    plane.later(seconds=31)
    claims = await plane.ledger.claim_in_turn(desk.turns, lease)
    assert len(claims) == 5
    assert desk.turns.settle(claims) == claims[2:]
    assert desk.traffic.with_backlog() == ["ocr"]


@pytest.fixture
def full() -> Desk:
    """A service whose only slot is taken, for longer than the pause before a probe."""
    desk = Desk(room=5)
    busy = Seen(desk.clock.now, 0, 1, instances={"i-1": Instance(1, desk.clock.now)})
    desk.traffic.learn([{"ocr": busy}], 1, 0)
    assert desk.turns.room("ocr") == 0
    desk.clock.advance(minutes=1)
    return desk


def test_a_full_service_is_probed_with_one(full: Desk) -> None:
    assert full.look(queues("a", "b")) == {"a": 1}
    assert full.turns.room("ocr") == 0


async def test_a_probe_is_never_what_was_tried_before(full: Desk, plane: Plane) -> None:
    """So that no directive loses two attempts to it."""
    await plane.submit()
    await plane.directive()
    plane.later(seconds=32)
    await plane.sweep_all()
    plane.later(minutes=2)
    await plane.sweep_all()
    claims = await plane.ledger.claim_in_turn(full.turns, timedelta(seconds=30))
    assert [claim.row.body["attempt_no"] for claim in claims] == [2]
    assert full.turns.settle(claims) == claims
    assert full.turns.room("ocr") == 0
