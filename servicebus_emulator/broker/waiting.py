"""Those who wait: called when there is something for them, after the change that brought it."""

import logging
from collections import OrderedDict, deque
from collections.abc import Callable

Call = Callable[[], None]

_log = logging.getLogger(__name__)


class Bell:
    """Calls come when a verb is through with its changes, never in the middle of one, and one
    after the other: a verb that is called from a call adds to the row and returns."""

    __slots__ = ("_is_ringing", "_row")

    def __init__(self) -> None:
        self._row: deque[Call] = deque()
        self._is_ringing = False

    def add(self, call: Call) -> None:
        self._row.append(call)

    def ring(self) -> None:
        if self._is_ringing or not self._row:
            return
        self._is_ringing = True
        try:
            while self._row:
                guarded(self._row.popleft())
        finally:
            self._is_ringing = False


def guarded(call: Call) -> None:
    """Its errors are not those of the verb that rang: another caller gave it."""
    try:
        call()
    except Exception:
        _log.exception("a callback of the broker failed")


class Waiters:
    """Each is called once, the first to come first, while there is work.

    `taken` counts what was taken: one that is called, takes nothing and waits again has its next
    turn after all the others, and none when nobody takes.
    """

    __slots__ = ("_bell", "_has_work", "_is_rung", "calls", "taken")

    def __init__(self, bell: Bell, has_work: Callable[[], bool]) -> None:
        self.calls: OrderedDict[Call, None] = OrderedDict()
        self.taken = 0
        self._bell = bell
        self._has_work = has_work
        self._is_rung = False

    def add(self, call: Call) -> None:
        self.calls[call] = None

    def discard(self, call: Call) -> None:
        self.calls.pop(call, None)

    def clear(self) -> None:
        self.calls.clear()

    def ring(self) -> None:
        if self.calls and not self._is_rung:
            self._is_rung = True
            self._bell.add(self._serve)

    def _serve(self) -> None:
        self._is_rung = False
        turns = len(self.calls)
        while turns > 0 and self.calls and self._has_work():
            taken = self.taken
            call, _ = self.calls.popitem(last=False)
            guarded(call)
            turns = len(self.calls) if self.taken != taken else turns - 1
