"""Turns a tree into closures: True, False, or None for unknown.

A closure for each node, made once, is what makes judging a message cheap; the comparison of a
property with a constant, which is what most filters are, has one of its own.
"""

import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TypeAlias

from servicebus_emulator.rules.errors import FilterFailed, RuleError
from servicebus_emulator.rules.facts import Facts
from servicebus_emulator.rules.sql.arithmetic import OPERATORS, combine, compare
from servicebus_emulator.rules.sql.patterns import like_pattern
from servicebus_emulator.rules.sql.syntax import (
    And,
    Chain,
    Comparison,
    Constant,
    Exists,
    In,
    IsNull,
    Like,
    NamedProperty,
    Not,
    Or,
    Predicate,
    Property,
    Signed,
    SystemProperty,
    Value,
)
from servicebus_emulator.rules.values import MISSING, find

Judge: TypeAlias = Callable[[Facts], bool | None]
Reader: TypeAlias = Callable[[Facts], object]


def compile_predicate(predicate: Predicate) -> Judge:
    match predicate:
        case Comparison(symbol, left, Constant(value)):
            return _compared_with(symbol, _reader(left), value)
        case Comparison(symbol, left, right):
            return _compared(symbol, _reader(left), _reader(right))
        case Not() | And() | Or():
            return _logic(predicate)
        case _:
            return _test(predicate)


def _test(predicate: In | Like | IsNull | Exists) -> Judge:
    match predicate:
        case In(value, options):
            return _in(_reader(value), options)
        case Like():
            return _like(predicate)
        case IsNull(asked):
            reader = _reader(asked)
            return lambda facts: reader(facts) is None
        case Exists(asked):
            return _exists(asked)


def _logic(predicate: Not | And | Or) -> Judge:
    if isinstance(predicate, Not):
        return _not(compile_predicate(predicate.predicate))
    judges = [compile_predicate(part) for part in predicate.predicates]
    return _decided(judges, isinstance(predicate, Or))


def _not(judge: Judge) -> Judge:
    def opposite(facts: Facts) -> bool | None:
        verdict = judge(facts)
        return None if verdict is None else not verdict

    return opposite


def _decided(judges: list[Judge], decisive: bool) -> Judge:
    """OR is decided by one True, AND by one False; else one unknown makes the whole unknown."""

    def decided(facts: Facts) -> bool | None:
        verdict: bool | None = not decisive
        for judge in judges:
            part = judge(facts)
            if part is decisive:
                return decisive
            if part is None:
                verdict = None
        return verdict

    return decided


def _compared_with(symbol: str, left: Reader, constant: object) -> Judge:
    compared = OPERATORS[symbol]
    kind = type(constant)
    if kind is not str and kind is not int:
        return _compared(symbol, left, lambda _: constant)

    def comparison(facts: Facts) -> bool | None:
        value = left(facts)
        if type(value) is kind:
            return compared(value, constant)
        return compare(symbol, value, constant)

    return comparison


def _compared(symbol: str, left: Reader, right: Reader) -> Judge:
    return lambda facts: compare(symbol, left(facts), right(facts))


def _in(reader: Reader, options: tuple[Value, ...]) -> Judge:
    judge = _in_computed(reader, [_reader(option) for option in options])
    constants = [option.value for option in options if isinstance(option, Constant)]
    texts = frozenset(value for value in constants if type(value) is str)
    if len(options) > len(constants) or any(type(value) is not str for value in constants):
        return judge

    def contained(facts: Facts) -> bool | None:
        value = reader(facts)
        return value in texts if type(value) is str else judge(facts)

    return contained


def _in_computed(reader: Reader, options: list[Reader]) -> Judge:
    """As the equalities joined by OR: an option that is unknown leaves a miss unknown."""

    def contained(facts: Facts) -> bool | None:
        value = reader(facts)
        verdict: bool | None = False
        for option in options:
            part = compare("=", value, option(facts))
            if part:
                return True
            if part is None:
                verdict = None
        return verdict

    return contained


def _exists(asked: Property | SystemProperty) -> Judge:
    if isinstance(asked, Property):
        name = asked.name
        return lambda facts: find(facts.properties, name) is not MISSING
    reader = _reader(asked)
    return lambda facts: reader(facts) is not None


def _like(like: Like) -> Judge:
    escape = like.escape or Constant(None)
    if isinstance(like.pattern, Constant) and isinstance(escape, Constant):
        try:
            pattern = _pattern(like.pattern.value, escape.value, like.escape is not None)
        except ValueError as error:
            raise RuleError(f"LIKE: {error}") from error
        return _matched(_reader(like.value), pattern)
    return _computed_like(_reader(like.value), _reader(like.pattern), like.escape)


def _matched(reader: Reader, pattern: re.Pattern[str] | None) -> Judge:
    if pattern is None:
        return lambda _: None
    fullmatch = pattern.fullmatch

    def matched(facts: Facts) -> bool | None:
        value = reader(facts)
        return fullmatch(value) is not None if isinstance(value, str) else None

    return matched


def _computed_like(reader: Reader, pattern: Reader, escape: Value | None) -> Judge:
    escape_reader = _reader(escape or Constant(None))

    def matched(facts: Facts) -> bool | None:
        value = reader(facts)
        try:
            compiled = _pattern(pattern(facts), escape_reader(facts), escape is not None)
        except ValueError as error:
            raise FilterFailed(f"LIKE: {error}") from error
        if compiled is None or not isinstance(value, str):
            return None
        return compiled.fullmatch(value) is not None

    return matched


def _pattern(pattern: object, escape: object, has_escape: bool) -> re.Pattern[str] | None:
    """None where something is unknown, or no text."""
    if not isinstance(pattern, str) or (has_escape and not isinstance(escape, str)):
        return None
    return like_pattern(pattern, escape if isinstance(escape, str) else None)


def _reader(value: Value) -> Reader:
    match value:
        case Constant(constant):
            return lambda _: constant
        case Property(name):
            return _property(name)
        case SystemProperty(field):
            return attrgetter(field)
        case NamedProperty(name):
            return _named(_reader(name))
        case Signed(operand, is_negative):
            reader, sign = _reader(operand), "-" if is_negative else "+"
            return lambda facts: combine(sign, 0, reader(facts))
        case Chain(first, steps):
            return _chain(_reader(first), [(symbol, _reader(step)) for symbol, step in steps])


def _property(name: str) -> Reader:
    def read(facts: Facts) -> object:
        properties = facts.properties
        if name in properties:
            return properties[name]
        return _known(properties, name)

    return read


def _named(reader: Reader) -> Reader:
    def read(facts: Facts) -> object:
        name = reader(facts)
        return _known(facts.properties, name) if isinstance(name, str) else None

    return read


def _known(properties: Mapping[str, object], name: str) -> object:
    value = find(properties, name)
    return None if value is MISSING else value


def _chain(first: Reader, steps: list[tuple[str, Reader]]) -> Reader:
    def computed(facts: Facts) -> object:
        value = first(facts)
        for symbol, operand in steps:
            value = combine(symbol, value, operand(facts))
        return value

    return computed
