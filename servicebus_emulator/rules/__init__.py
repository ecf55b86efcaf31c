"""Which messages a subscription gets: facts about a message, and the filters that look at them."""

from servicebus_emulator.rules.correlation import CorrelationFilter
from servicebus_emulator.rules.errors import FilterFailed, RuleError
from servicebus_emulator.rules.facts import Facts, Value
from servicebus_emulator.rules.rule import DEFAULT_RULE, FalseFilter, Filter, Rule, TrueFilter
from servicebus_emulator.rules.sql import SqlFilter

__all__ = [
    "DEFAULT_RULE",
    "CorrelationFilter",
    "Facts",
    "FalseFilter",
    "Filter",
    "FilterFailed",
    "Rule",
    "RuleError",
    "SqlFilter",
    "TrueFilter",
    "Value",
]
