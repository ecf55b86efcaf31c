"""Which messages of a topic a subscription gets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lucius_bus.port import BusMessage


class Filter(Protocol):
    def matches(self, message: BusMessage, /) -> bool:
        """Whether the subscription gets a copy of the message."""


@dataclass(frozen=True, slots=True)
class MatchAll:
    def matches(self, _message: BusMessage, /) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class PropertyFilter:
    """Every condition holds: a correlation filter in the words of Service Bus.

    The named application properties are there and equal, letter case and type included; so are
    `message_id` and `session_id` where they are given.
    """

    properties: Mapping[str, str | int] = field(default_factory=dict)
    message_id: str | None = None
    session_id: str | None = None

    def matches(self, message: BusMessage, /) -> bool:
        found = message.properties
        for name, value in self.properties.items():
            if found.get(name) != value:
                return False
        if self.message_id is not None and message.message_id != self.message_id:
            return False
        return self.session_id is None or message.session_id == self.session_id
