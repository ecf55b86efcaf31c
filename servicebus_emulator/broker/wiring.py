"""What all parts of one broker share."""

import itertools
from collections.abc import Callable
from typing import Protocol

from servicebus_emulator.broker.agenda import Agenda
from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.observing import Observation
from servicebus_emulator.broker.records import Record
from servicebus_emulator.broker.waiting import Bell


class Refusal(Exception):
    """A message that is forwarded cannot go there: the reason is for its dead letter."""

    def __init__(self, reason: str, description: str) -> None:
        super().__init__(description)
        self.reason = reason
        self.description = description


class Forward(Protocol):
    def __call__(
        self, target: str, message: Content, moment: int, hops: int, origin: str | None, /
    ) -> None:
        """Send it on. `Refusal`. `origin`: where it was a dead letter."""


class Wiring:
    """`record` is None while nobody keeps what changes, and while a broker is restored; `observe`
    while nobody watches."""

    __slots__ = ("_serials", "agenda", "bell", "forward", "observe", "record", "tokens")

    def __init__(
        self,
        clock: Callable[[], int],
        tokens: Callable[[], bytes],
        record: Callable[[Record], None] | None,
        forward: Forward,
        observe: Callable[[Observation], None] | None = None,
    ) -> None:
        self.bell = Bell()
        self.agenda = Agenda(clock, self.bell)
        self.tokens = tokens
        self.record = record
        self.forward = forward
        self.observe = observe
        self._serials = itertools.count()

    def serial(self) -> int:
        return next(self._serials)
