"""Filters that compare properties of a message with given values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from servicebus_emulator.rules.facts import Facts
from servicebus_emulator.rules.values import find, kind_of, plain

_SYSTEM = (
    "message_id",
    "correlation_id",
    "to",
    "reply_to",
    "subject",
    "session_id",
    "reply_to_session_id",
    "content_type",
)


@dataclass(frozen=True, slots=True)
class CorrelationFilter:
    """Matches when every property that it names has exactly the value given.

    Letter case counts in values and not in the names of application properties. Kinds count: 3 is
    neither "3" nor 3.0, and True is not 1.
    """

    properties: Mapping[str, object] = field(default_factory=dict)
    message_id: str | None = None
    correlation_id: str | None = None
    to: str | None = None
    reply_to: str | None = None
    subject: str | None = None
    session_id: str | None = None
    reply_to_session_id: str | None = None
    content_type: str | None = None
    _system: tuple[tuple[str, str], ...] = field(init=False, repr=False, compare=False)
    _application: tuple[tuple[str, object, str | None], ...] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        named = ((name, getattr(self, name)) for name in _SYSTEM)
        wanted = ((name, plain(value)) for name, value in self.properties.items())
        object.__setattr__(self, "_system", tuple(pair for pair in named if pair[1] is not None))
        object.__setattr__(
            self, "_application", tuple((name, value, kind_of(value)) for name, value in wanted)
        )

    def matches(self, facts: Facts, /) -> bool:
        for name, text in self._system:
            if getattr(facts, name) != text:
                return False
        for name, value, kind in self._application:
            found = find(facts.properties, name)
            if found != value or kind_of(found) != kind:
                return False
        return True
