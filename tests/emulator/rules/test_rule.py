"""Rules, and the filters that look at nothing."""

import pytest

from servicebus_emulator.rules import (
    DEFAULT_RULE,
    Facts,
    FalseFilter,
    Rule,
    RuleError,
    SqlFilter,
    TrueFilter,
)


def test_the_default_rule_lets_everything_through() -> None:
    assert DEFAULT_RULE.name == "$Default"
    assert DEFAULT_RULE.filter.matches(Facts())


def test_the_false_filter_lets_nothing_through() -> None:
    assert not FalseFilter().matches(Facts())


def test_a_rule_with_an_action_is_refused() -> None:
    with pytest.raises(RuleError, match=r"actions .* are not supported"):
        Rule("half", TrueFilter(), "SET quantity = quantity / 2")


def test_rules_are_equal_when_they_say_the_same() -> None:
    assert Rule("r", SqlFilter("a = @x", {"@x": 1})) == Rule("r", SqlFilter("a = @x", {"@x": 1}))
    assert Rule("r", SqlFilter("a = @x", {"@x": 1})) != Rule("r", SqlFilter("a = @x", {"@x": 2}))
