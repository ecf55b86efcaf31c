"""How one piece of work stands, between the runtime and a handler.

The runtime writes it in its event loop, the handler reads it in another thread. Only progress goes
the other way. Each change is one assignment, so neither side waits for the other.
"""

import math
import threading
from collections.abc import Callable
from datetime import datetime

from lucius_contract.messages import Progress
from lucius_sdk.error_model import StepCancelled, StopReason, WorkStopped, presentable

_NOTE_LIMIT = 500


class WorkState:
    """How one piece of work stands. `request_cancel`, `stop`, `set_deadline` and `on_stop` belong
    to the runtime's thread."""

    def __init__(self, deadline: datetime) -> None:
        self._deadline = deadline
        self._is_cancelled = False
        self._reason: StopReason | None = None
        self._must_stop = False
        self._sleepers: list[threading.Event] = []
        self._callbacks: list[Callable[[], object]] = []
        self._progress: tuple[float | None, str | None] | None = None

    @property
    def deadline(self) -> datetime:
        return self._deadline

    def set_deadline(self, deadline: datetime) -> None:
        """It only moves on: an answer that comes late takes nothing back."""
        self._deadline = max(self._deadline, deadline)

    @property
    def is_cancelled(self) -> bool:
        return self._is_cancelled

    @property
    def reason(self) -> StopReason | None:
        """The first reason to stop, a cancelled job aside."""
        return self._reason

    @property
    def must_stop(self) -> bool:
        return self._must_stop

    def request_cancel(self) -> None:
        """The job is cancelled: the work should end, and be reported as cancelled."""
        if not self._is_cancelled:
            self._is_cancelled = True
            self._tell()

    def stop(self, reason: StopReason) -> None:
        """The work should end and not be reported."""
        if self._reason is None:
            self._reason = reason
            self._tell()

    def on_stop(self, callback: Callable[[], object]) -> None:
        """Call it at each new reason to stop; at once, if there is one already."""
        self._callbacks.append(callback)
        if self.must_stop:
            callback()

    def _tell(self) -> None:
        self._must_stop = True
        for sleeper in list(self._sleepers):
            sleeper.set()
        for callback in self._callbacks:
            callback()

    def check(self) -> None:
        if not self._must_stop:
            return
        if self._reason is not None:
            raise WorkStopped(self._reason)
        raise StepCancelled

    def wait(self, seconds: float) -> bool:
        """Sleep in a handler's thread; True, and early, when the work must stop."""
        sleeper = threading.Event()
        self._sleepers.append(sleeper)
        try:
            # Asked only now: whoever says so from here on finds the sleeper.
            return self._must_stop or sleeper.wait(seconds)
        finally:
            self._sleepers.remove(sleeper)

    def note_progress(self, fraction: float | None, note: str | None) -> None:
        before = self._progress or (None, None)
        self._progress = (
            before[0] if fraction is None else fraction,
            before[1] if note is None else note,
        )

    def latest_progress(self) -> Progress | None:
        """For the next HEARTBEAT; None if the handler has told nothing."""
        if self._progress is None:
            return None
        fraction, note = self._progress
        return Progress(fraction=_within_bounds(fraction), note=note and _shortened(note))


def _within_bounds(fraction: float | None) -> float | None:
    """A sum that ends at 1.0000001 is no reason to fail, and neither is 0/0."""
    if fraction is None or math.isnan(fraction):
        return None
    return min(max(float(fraction), 0.0), 1.0)


def _shortened(note: str) -> str:
    return presentable(note)[:_NOTE_LIMIT]
