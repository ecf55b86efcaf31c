"""Generated expressions, judged by the filter and by an evaluator that shares nothing with it.

The evaluator takes truth for a number: 1, 0, and a half for unknown. AND is then the smaller of
two, OR the larger, NOT the distance from 1.
"""

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from servicebus_emulator.rules import Facts, FilterFailed
from tests.emulator.rules.judging import verdict
from tests.runner.tiers import examples

UNKNOWN = Fraction(1, 2)
TRUTHS = {True: Fraction(1), False: Fraction(0), None: UNKNOWN}
NAMES = ("Alpha", "beta", "with space")
WRITTEN = {"Alpha": "aLPHA", "beta": "user.beta", "with space": "[With Space]"}
SYMBOLS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Properties = Mapping[str, object]


class Uncomputable(Exception):
    pass


class Value(NamedTuple):
    text: str
    evaluate: Callable[[Properties], Any]


class Predicate(NamedTuple):
    text: str
    evaluate: Callable[[Properties], Fraction]


def is_number(value: object) -> bool:
    return isinstance(value, int | Fraction) and not isinstance(value, bool)


def compared(symbol: str, left: Any, right: Any) -> Fraction:
    numbers = is_number(left) and is_number(right)
    texts = isinstance(left, str) and isinstance(right, str)
    truths = isinstance(left, bool) and isinstance(right, bool)
    if numbers or texts or (truths and symbol in ("=", "<>", "!=")):
        return Fraction(int(SYMBOLS[symbol](left, right)))
    return UNKNOWN


def computed(symbol: str, left: Any, right: Any) -> Any:
    if symbol == "+" and isinstance(left, str) and isinstance(right, str):
        return left + right
    if not (is_number(left) and is_number(right)):
        return None
    if symbol == "/" and right == 0:
        raise Uncomputable
    exact = {"+": left + right, "-": left - right, "*": left * right}
    return exact[symbol] if symbol in exact else math.trunc(Fraction(left) / right)


def liked(value: Any, prefix: str) -> Fraction:
    return Fraction(int(value.startswith(prefix))) if isinstance(value, str) else UNKNOWN


def constant(value: object) -> Value:
    written = {True: "TRUE", False: "FALSE", None: "NULL"}
    if isinstance(value, bool) or value is None:
        return Value(written[value], lambda _: value)
    return Value(f"'{value}'" if isinstance(value, str) else str(value), lambda _: value)


def read(name: str) -> Value:
    return Value(WRITTEN[name], lambda properties: properties.get(name))


SCALARS = st.one_of(
    st.integers(0, 4), st.sampled_from(["", "a", "b", "ab"]), st.booleans(), st.none()
)
PROPERTIES = st.dictionaries(st.sampled_from(NAMES), SCALARS)
LEAVES = SCALARS.map(constant) | st.sampled_from(NAMES).map(read)


def arithmetic(values: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    def joined(symbol: str, left: Value, right: Value) -> Value:
        return Value(
            f"({left.text} {symbol} {right.text})",
            lambda seen: computed(symbol, left.evaluate(seen), right.evaluate(seen)),
        )

    def signed(sign: str, value: Value) -> Value:
        return Value(f"{sign}{value.text}", lambda seen: computed(sign, 0, value.evaluate(seen)))

    return st.builds(joined, st.sampled_from("+-*/"), values, values) | st.builds(
        signed, st.sampled_from("+-"), values
    )


VALUES = st.recursive(LEAVES, arithmetic, max_leaves=4)


def comparison(symbol: str, left: Value, right: Value) -> Predicate:
    return Predicate(
        f"{left.text} {symbol} {right.text}",
        lambda seen: compared(symbol, left.evaluate(seen), right.evaluate(seen)),
    )


def membership(value: Value, options: list[Value], is_negated: bool) -> Predicate:
    def evaluate(seen: Properties) -> Fraction:
        found = max(compared("=", value.evaluate(seen), one.evaluate(seen)) for one in options)
        return 1 - found if is_negated else found

    written = ", ".join(option.text for option in options)
    return Predicate(f"{value.text} {'NOT ' * is_negated}IN ({written})", evaluate)


def prefix(value: Value, start: str, is_negated: bool) -> Predicate:
    def evaluate(seen: Properties) -> Fraction:
        found = liked(value.evaluate(seen), start)
        return 1 - found if is_negated else found

    return Predicate(f"{value.text} {'NOT ' * is_negated}LIKE '{start}%'", evaluate)


def nullness(name: str, is_negated: bool) -> Predicate:
    return Predicate(
        f"{WRITTEN[name]} IS {'NOT ' * is_negated}NULL",
        lambda seen: TRUTHS[(seen.get(name) is None) != is_negated],
    )


def existence(name: str) -> Predicate:
    return Predicate(f"EXISTS({WRITTEN[name]})", lambda seen: TRUTHS[name in seen])


TESTS = st.one_of(
    st.builds(comparison, st.sampled_from(sorted(SYMBOLS)), VALUES, VALUES),
    st.builds(membership, LEAVES, st.lists(LEAVES, min_size=1, max_size=3), st.booleans()),
    st.builds(prefix, LEAVES, st.sampled_from(["", "a", "ab"]), st.booleans()),
    st.builds(nullness, st.sampled_from(NAMES), st.booleans()),
    st.sampled_from(NAMES).map(existence),
)


def logic(predicates: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    """With no parentheses around what binds closer, and with them elsewhere."""

    def opposite(one: Predicate) -> Predicate:
        return Predicate(f"NOT ({one.text})", lambda seen: 1 - one.evaluate(seen))

    def both(one: Predicate, other: Predicate) -> Predicate:
        return Predicate(
            f"({one.text}) AND ({other.text})",
            lambda seen: min(one.evaluate(seen), other.evaluate(seen)),
        )

    def either(one: Predicate, other: Predicate) -> Predicate:
        return Predicate(
            f"{one.text} OR {other.text}",
            lambda seen: max(one.evaluate(seen), other.evaluate(seen)),
        )

    pair = (predicates, predicates)
    return predicates.map(opposite) | st.builds(both, *pair) | st.builds(either, *pair)


PREDICATES = st.recursive(TESTS, logic, max_leaves=5)


@settings(max_examples=examples(500))
@given(PREDICATES, PROPERTIES)
def test_a_filter_judges_as_three_valued_logic_does(
    predicate: Predicate, properties: dict[str, object]
) -> None:
    try:
        expected = predicate.evaluate(properties)
    except Uncomputable:
        return
    assert TRUTHS[verdict(predicate.text, Facts(properties))] == expected


@given(PREDICATES, PROPERTIES)
def test_judging_ends_in_a_verdict_or_in_a_failed_filter(
    predicate: Predicate, properties: dict[str, object]
) -> None:
    try:
        assert verdict(predicate.text, Facts(properties)) in (True, False, None)
    except FilterFailed as failure:
        assert "cannot be computed" in str(failure)  # noqa: PT017 - a verdict is as good
