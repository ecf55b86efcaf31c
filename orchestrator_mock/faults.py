"""Faults by name, as a script switches them on."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple


class Place(StrEnum):
    """Where a fault strikes."""

    CALLBACK = "callback"
    BUS = "bus"
    STORAGE = "storage"


class FaultInfo(NamedTuple):
    name: str
    place: Place
    meaning: str
    is_state: bool = False
    """It lasts until it is cleared, and strikes nobody in particular."""


FAULTS: tuple[FaultInfo, ...] = (
    FaultInfo("callback-down", Place.CALLBACK, "Nothing listens where replies go.", is_state=True),
    FaultInfo("callback-cut", Place.CALLBACK, "The connection ends before anything was done."),
    FaultInfo("callback-500", Place.CALLBACK, "Answered 500, and nothing was done."),
    FaultInfo("callback-503", Place.CALLBACK, "Answered 503 with Retry-After, nothing was done."),
    FaultInfo("callback-slow", Place.CALLBACK, "Done, and answered only after `seconds`."),
    FaultInfo("callback-lost-answer", Place.CALLBACK, "Done, and the answer is lost."),
    FaultInfo("callback-409", Place.CALLBACK, "Answered STALE_ATTEMPT, whatever it is."),
    FaultInfo(
        "callback-hold", Place.CALLBACK, "Neither done nor answered until the fault is cleared."
    ),
    FaultInfo("bus-dropped", Place.BUS, "Every connection to the bus is cut, once."),
    FaultInfo("bus-away", Place.BUS, "Nothing listens where the bus was.", is_state=True),
    FaultInfo("settlement-lost", Place.BUS, "A settlement is confirmed, and not done."),
    FaultInfo(
        "reply-dropped", Place.BUS, "The connection is cut when a reply is sent; it is not taken."
    ),
    FaultInfo("storage-503", Place.STORAGE, "A ref is answered 503."),
    FaultInfo("storage-cut", Place.STORAGE, "A ref's content breaks off in the middle."),
    FaultInfo("storage-slow", Place.STORAGE, "A ref is answered only after `seconds`."),
)
_BY_NAME = {info.name: info for info in FAULTS}


class UnknownFault(ValueError):
    """There is no fault of this name."""


def fault_info(name: str) -> FaultInfo:
    found = _BY_NAME.get(name)
    if found is None:
        raise UnknownFault(f"there is no fault {name!r}; there are {', '.join(_BY_NAME)}")
    return found


@dataclass(frozen=True, slots=True)
class Fault:
    """Strikes `count` times, or until it is cleared. `types` narrows a callback fault to types of
    replies, `job_id` to one job; `seconds` is for those that delay."""

    name: str
    count: int | None = 1
    types: frozenset[str] = frozenset()
    job_id: str | None = None
    seconds: float = 3.0

    def __post_init__(self) -> None:
        fault_info(self.name)
        if self.count is not None and self.count < 1:
            raise ValueError(f"count must be at least 1: {self.count}")

    @property
    def place(self) -> Place:
        return fault_info(self.name).place

    def strikes(self, place: Place, job_id: str, type: str) -> bool:
        if self.place is not place or self.job_id not in (None, job_id):
            return False
        return not self.types or type in self.types


class Faults:
    """Those that are switched on, in the order in which they were added."""

    def __init__(self) -> None:
        self._active: list[Fault] = []

    @property
    def active(self) -> Sequence[Fault]:
        return tuple(self._active)

    def add(self, fault: Fault) -> None:
        self._active.append(fault)

    def clear(self, names: Iterable[str] | None = None) -> list[Fault]:
        """Switch off those of these names, or all; which those were."""
        gone = frozenset(names) if names is not None else frozenset(_BY_NAME)
        cleared = [fault for fault in self._active if fault.name in gone]
        self._active = [fault for fault in self._active if fault.name not in gone]
        return cleared

    def is_on(self, fault: Fault) -> bool:
        return any(each is fault for each in self._active)

    def take(self, place: Place, job_id: str = "", type: str = "") -> Fault | None:
        """The one that strikes now, counted down."""
        for index, fault in enumerate(self._active):
            if fault.strikes(place, job_id, type):
                if fault.count == 1:
                    del self._active[index]
                elif fault.count is not None:
                    self._active[index] = replace(fault, count=fault.count - 1)
                return fault
        return None
