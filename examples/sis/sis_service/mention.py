"""A value in a text."""

from typing import NamedTuple


class Mention(NamedTuple):
    """`value` as JSON has it, read from `text[start:end]`."""

    start: int
    end: int
    value: str | float | bool
    is_named: bool = False
    """Whether the name of the thing that is asked for stands right beside it."""
