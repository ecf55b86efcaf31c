"""What the table says about one variable."""

from enum import StrEnum
from typing import NamedTuple

from lucius_settings.kinds import Kind


class Use(StrEnum):
    READ = "read"
    IDLE = "idle"
    """Accepted, and warned about when set: it changes nothing."""
    ELSEWHERE = "elsewhere"
    """Belongs to another program, so it is passed over."""


class SettingInfo(NamedTuple):
    """`field` is where the value stands in the settings, with a dot before a member of a group.
    `default` is written as the variable would be; without one, `unset` says what counts."""

    variable: str
    field: str | None
    kind: Kind
    default: str | None
    meaning: str
    secret: bool = False
    unset: str = "none"
    use: Use = Use.READ
