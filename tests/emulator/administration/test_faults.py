"""Faults over HTTP."""

import json
from typing import Any

import pytest

from servicebus_emulator.administration import Request
from servicebus_emulator.faults import Fault, FaultKind, Point
from tests.emulator.administration.serving import Served

DROP = {"kind": "drop", "entity": "lane", "point": "send", "count": 2}


@pytest.fixture
def served() -> Served:
    return Served()


def ask(served: Served, method: str, body: object = None) -> tuple[int, Any]:
    sent = b"" if body is None else json.dumps(body).encode()
    answer = served.handle(Request(method, "/$emulator/faults", body=sent))
    return answer.status, json.loads(answer.body) if answer.status < 400 else answer.body


def test_a_fault_is_added_and_shown(served: Served) -> None:
    status, added = ask(served, "POST", DROP)
    assert (status, added) == (201, {"faults": [{**DROP, "delay_ms": 0}]})
    assert served.faults.active() == [Fault(FaultKind.DROP, "lane", Point.SEND, 2)]
    served.faults.take(Point.SEND, "lane")
    assert ask(served, "GET") == (200, {"faults": [{**DROP, "count": 1, "delay_ms": 0}]})


def test_several_are_added_at_once(served: Served) -> None:
    ask(served, "POST", [{"kind": "refuse"}, {"kind": "delay", "delay_ms": 5}])
    assert [fault.kind for fault in served.faults.active()] == ["refuse", "delay"]


def test_all_are_cleared(served: Served) -> None:
    ask(served, "POST", DROP)
    assert ask(served, "DELETE") == (200, {"faults": []})
    assert served.faults.active() == []


@pytest.mark.parametrize(
    "body",
    [
        None,
        7,
        {},
        {"kind": "explode"},
        {"kind": []},
        {"kind": "drop", "point": "nowhere"},
        {"kind": "drop", "count": 0},
        {"kind": "drop", "count": True},
        {"kind": "drop", "count": "2"},
        {"kind": "drop", "entity": 3},
        {"kind": "drop", "often": 2},
        {"kind": "delay"},
        {"kind": "duplicate", "point": "send"},
        [{"kind": "drop"}, {"kind": "explode"}],
    ],
)
def test_what_is_no_fault_is_refused_whole(served: Served, body: object) -> None:
    status, detail = ask(served, "POST", body)
    assert status == 400
    assert b"<Detail>" in detail
    assert served.faults.active() == []
