"""How long a client goes on with what may pass."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lucius_artifacts.client.errors import Unavailable

T = TypeVar("T")

_LONGEST_ASKED = 30.0


def wait(seconds: float, until: threading.Event | None = None) -> None:
    """So long, or until the event."""
    if until is None:
        time.sleep(seconds)
    else:
        until.wait(seconds)


@dataclass(frozen=True, slots=True)
class Patience:
    """`tries` at one thing, with pauses that double from `first` to `longest` seconds, each cut by
    chance, so that clients that failed together do not come back together."""

    tries: int = 6
    first: float = 0.25
    longest: float = 8.0
    pause: Callable[[float, threading.Event | None], None] = wait
    chance: Callable[[], float] = random.random

    def delay(self, failures: int, error: Unavailable | None = None) -> float:
        """Before the next try, after so many that failed. What the server asks for is waited."""
        asked = None if error is None or error.answer is None else error.answer.retry_after
        if asked is not None and asked.isdecimal():
            return min(float(asked), _LONGEST_ASKED)
        return min(self.first * 2.0 ** (failures - 1), self.longest) * (0.5 + self.chance() / 2)

    def insist(self, work: Callable[[], T]) -> T:
        """Again and again while it is `Unavailable`. It must do no harm to do it twice."""
        failures = 0
        while True:
            try:
                return work()
            except Unavailable as error:
                failures += 1
                if failures >= self.tries:
                    raise
                self.pause(self.delay(failures, error), None)
