"""The filter that an expression in the language of SQL describes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from servicebus_emulator.rules.errors import RuleError
from servicebus_emulator.rules.facts import Facts
from servicebus_emulator.rules.sql.compiler import compile_predicate
from servicebus_emulator.rules.sql.parser import parse

MAX_LENGTH = 1024


@dataclass(frozen=True, slots=True)
class SqlFilter:
    """Matches when the expression is true: what is unknown does not match.

    Absent properties, nulls and values of kinds that cannot be compared make a comparison unknown.
    Names and keywords are taken in any letter case, texts compare by their code points.
    """

    expression: str
    parameters: Mapping[str, object] = field(default_factory=dict)
    _judge: Callable[[Facts], bool | None] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.expression) > MAX_LENGTH:
            raise RuleError(
                f"the expression has {len(self.expression)} characters, {MAX_LENGTH} are allowed"
            )
        tree = parse(self.expression, self.parameters)
        object.__setattr__(self, "_judge", compile_predicate(tree))

    def matches(self, facts: Facts, /) -> bool:
        """`FilterFailed` where the expression cannot be evaluated on this message."""
        return self._judge(facts) is True
