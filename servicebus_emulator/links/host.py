"""What a connection needs of the server that runs it."""

from collections.abc import Callable
from typing import Protocol

from servicebus_emulator.broker import Broker
from servicebus_emulator.connection_limits import ConnectionLimits
from servicebus_emulator.faults import Faults
from servicebus_emulator.sas import Keys


class Timer(Protocol):
    def cancel(self) -> None: ...


class Host(Protocol):
    broker: Broker
    keys: Keys
    faults: Faults
    limits: ConnectionLimits
    name: str

    def clock(self) -> int: ...

    def call_later(self, milliseconds: int, callback: Callable[[], None]) -> Timer: ...


class Dropped(Exception):
    """The connection is to end without a word."""


class Delayed(Exception):
    """What was asked is to be handled later; nothing was done yet."""

    def __init__(self, milliseconds: int) -> None:
        super().__init__(milliseconds)
        self.milliseconds = milliseconds
