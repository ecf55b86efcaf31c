"""A rule of a subscription, and the filters that need no language."""

from dataclasses import dataclass
from typing import Protocol

from servicebus_emulator.rules.errors import RuleError
from servicebus_emulator.rules.facts import Facts


class Filter(Protocol):
    """Decides whether a subscription gets a copy of a message."""

    def matches(self, facts: Facts, /) -> bool:
        """`FilterFailed` where the filter cannot be evaluated on this message."""
        ...


@dataclass(frozen=True, slots=True)
class TrueFilter:
    """Lets every message through."""

    def matches(self, facts: Facts, /) -> bool:  # noqa: ARG002 - as every filter
        return True


@dataclass(frozen=True, slots=True)
class FalseFilter:
    """Lets no message through."""

    def matches(self, facts: Facts, /) -> bool:  # noqa: ARG002 - as every filter
        return False


@dataclass(frozen=True, slots=True)
class Rule:
    """A named filter. An action would change the copy of the message: none is supported."""

    name: str
    filter: Filter
    action: str | None = None

    def __post_init__(self) -> None:
        if self.action is not None:
            raise RuleError(
                f"rule {self.name!r} has an action, and actions (SET, REMOVE) are not supported:"
                " leave the action out, or have the sender set the property"
            )


DEFAULT_RULE = Rule("$Default", TrueFilter())
