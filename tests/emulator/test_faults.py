"""Switches that strike so often and no more."""

from itertools import product

import pytest

from servicebus_emulator.faults import Fault, FaultKind, Faults, Point


def faults(*given: Fault) -> Faults:
    found = Faults()
    for fault in given:
        found.add(fault)
    return found


def test_a_fault_strikes_as_often_as_it_says() -> None:
    found = faults(Fault(FaultKind.DROP, count=2))
    struck = [found.take(Point.SEND, "q") for _ in range(3)]
    assert [one is not None for one in struck] == [True, True, False]
    assert found.active() == []


def test_a_fault_strikes_where_it_says() -> None:
    found = faults(Fault(FaultKind.DROP, "lane/Subscriptions/ocr", Point.SETTLE))
    assert found.take(Point.SETTLE, "lane") is None
    assert found.take(Point.SEND, "lane/Subscriptions/ocr") is None
    assert found.take(Point.SETTLE, "LANE/subscriptions/OCR") is not None


def test_the_first_that_fits_strikes_first() -> None:
    found = faults(Fault(FaultKind.REFUSE, "a"), Fault(FaultKind.DROP), Fault(FaultKind.REFUSE))
    kinds = [fault.kind for _ in range(2) if (fault := found.take(Point.SEND, "b"))]
    assert kinds == [FaultKind.DROP, FaultKind.REFUSE]
    assert found.active() == [Fault(FaultKind.REFUSE, "a")]


def test_cleared_faults_strike_no_more() -> None:
    found = faults(Fault(FaultKind.DROP, count=9))
    found.clear()
    assert found.take(Point.SEND, "q") is None


POINTS = {
    FaultKind.DUPLICATE: {Point.RECEIVE},
    FaultKind.LOSE_SETTLEMENT: {Point.SETTLE},
    FaultKind.LOSE_ANSWER: {Point.SEND, Point.SETTLE, Point.MANAGE},
}


@pytest.mark.parametrize(("kind", "point"), list(product(FaultKind, Point)))
def test_a_fault_strikes_only_where_it_makes_sense(kind: FaultKind, point: Point) -> None:
    makes_sense = point in POINTS.get(kind, set(Point))
    assert (faults(Fault(kind, delay_ms=1)).take(point, "q") is not None) is makes_sense
    if makes_sense:
        assert Fault(kind, point=point, delay_ms=1).strikes(point, "q")
    else:
        with pytest.raises(ValueError, match=f"{kind} strikes only at"):
            Fault(kind, point=point)


@pytest.mark.parametrize(
    ("given", "what"), [({"count": 0}, "count"), ({"kind": FaultKind.DELAY}, "delay_ms")]
)
def test_a_fault_that_could_never_strike_is_refused(given: dict[str, object], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        Fault(**{"kind": FaultKind.DROP, **given})  # type: ignore[arg-type]
