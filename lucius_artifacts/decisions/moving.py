"""The one way from a state to another: through the table."""

from collections.abc import Iterable

from lucius_artifacts.errors import Refused
from lucius_artifacts.states import State, Transition, Trigger, allows, sources_of


def require_row(
    table: Iterable[Transition[State, Trigger]],
    what: str,
    source: State,
    trigger: Trigger,
    target: State,
) -> None:
    """`what` names the row in the reason."""
    rows = tuple(table)
    if not allows(rows, source, trigger, target):
        possible = " or ".join(sources_of(rows, trigger))
        raise Refused(f"{what} is {source}: {trigger} is possible when it is {possible}")
