"""Reads an expression into a tree, by recursive descent."""

from collections.abc import Callable, Mapping

from servicebus_emulator.rules.errors import RuleError
from servicebus_emulator.rules.sql.cursor import Cursor
from servicebus_emulator.rules.sql.operands import Operands
from servicebus_emulator.rules.sql.syntax import (
    And,
    Chain,
    Comparison,
    Exists,
    In,
    IsNull,
    Like,
    NamedProperty,
    Node,
    Not,
    Or,
    Predicate,
    Property,
    Signed,
    SystemProperty,
    Value,
)
from servicebus_emulator.rules.sql.tokens import TokenKind

_COMPARISONS = ("=", "<>", "!=", "<", "<=", ">", ">=")
_TESTS = ("NOT", "IN", "LIKE", "IS")


def parse(expression: str, parameters: Mapping[str, object]) -> Predicate:
    """`RuleError` with the position of what cannot be understood."""
    cursor = Cursor(expression)
    parser = _Parser(cursor, Operands(cursor, parameters))
    predicate = parser.predicate(parser.disjunction)
    if cursor.token.kind is not TokenKind.END:
        cursor.refuse("AND, OR or the end")
    return predicate


class _Parser:
    """Parentheses may hold a predicate or a value, so one descent reads both, and whoever needs one
    of the two says so: `predicate` and `value` refuse the other."""

    def __init__(self, cursor: Cursor, operands: Operands) -> None:
        self._cursor = cursor
        self._operands = operands

    def predicate(self, read: Callable[[], Node]) -> Predicate:
        position = self._cursor.position
        return _predicate(read(), position)

    def _value(self, read: Callable[[], Node]) -> Value:
        position = self._cursor.position
        return _value(read(), position)

    def disjunction(self) -> Node:
        return self._joined(self._conjunction, "OR", Or)

    def _conjunction(self) -> Node:
        return self._joined(self._negation, "AND", And)

    def _joined(self, read: Callable[[], Node], word: str, kind: type[And] | type[Or]) -> Node:
        position = self._cursor.position
        first = read()
        if not self._cursor.is_at(word):
            return first
        parts = [_predicate(first, position)]
        while self._cursor.took(word):
            parts.append(self.predicate(read))
        return kind(tuple(parts))

    def _negation(self) -> Node:
        count = 0
        while self._cursor.took("NOT"):
            count += 1
        if not count:
            return self._condition()
        predicate = self.predicate(self._condition)
        return Not(predicate) if count % 2 else predicate

    def _condition(self) -> Node:
        if self._cursor.took("EXISTS"):
            self._cursor.open()
            exists = Exists(self._operands.property())
            self._cursor.close()
            return exists
        position = self._cursor.position
        left = self._sum()
        if operator := self._cursor.took_any(_COMPARISONS):
            right = self._value(self._sum)
            return Comparison("<>" if operator == "!=" else operator, _value(left, position), right)
        if any(self._cursor.is_at(word) for word in _TESTS):
            return self._test(_value(left, position), position)
        return left

    def _test(self, value: Value, position: int) -> Predicate:
        if self._cursor.took("IS"):
            return self._null_test(value, position)
        is_negated = self._cursor.took("NOT")
        test: Predicate
        if self._cursor.took("IN"):
            test = In(value, self._options())
        elif self._cursor.took("LIKE"):
            test = self._like(value)
        else:
            self._cursor.refuse("IN or LIKE")
        return Not(test) if is_negated else test

    def _null_test(self, value: Value, position: int) -> Predicate:
        is_negated = self._cursor.took("NOT")
        if not self._cursor.took("NULL"):
            self._cursor.refuse("NULL")
        if not isinstance(value, Property | SystemProperty):
            raise RuleError(f"IS NULL asks about a property, and at position {position} is none")
        return Not(IsNull(value)) if is_negated else IsNull(value)

    def _options(self) -> tuple[Value, ...]:
        self._cursor.open()
        options = [self._value(self._sum)]
        while self._cursor.took(","):
            options.append(self._value(self._sum))
        self._cursor.close()
        return tuple(options)

    def _like(self, value: Value) -> Like:
        pattern = self._value(self._sum)
        escape = self._value(self._sum) if self._cursor.took("ESCAPE") else None
        return Like(value, pattern, escape)

    def _sum(self) -> Node:
        return self._chain(self._product, ("+", "-"))

    def _product(self) -> Node:
        return self._chain(self._signed, ("*", "/", "%"))

    def _chain(self, read: Callable[[], Node], operators: tuple[str, ...]) -> Node:
        position = self._cursor.position
        first = read()
        steps = []
        while operator := self._cursor.took_any(operators):
            steps.append((operator, self._value(read)))
        return Chain(_value(first, position), tuple(steps)) if steps else first

    def _signed(self) -> Node:
        signs = ""
        while sign := self._cursor.took_any(("+", "-")):
            signs += sign
        if not signs:
            return self._operand()
        return Signed(self._value(self._operand), signs.count("-") % 2 == 1)

    def _operand(self) -> Node:
        if self._cursor.is_call():
            return self._function()
        if not self._cursor.is_at("("):
            return self._operands.read()
        self._cursor.open()
        node = self.disjunction()
        self._cursor.close()
        return node

    def _function(self) -> NamedProperty:
        name = self._cursor.advance()
        if name.text.lower() not in ("property", "p"):
            raise RuleError(
                f"{name.text}() at position {name.position} is not supported:"
                " property(name) is the only function"
            )
        self._cursor.open()
        named = NamedProperty(self._value(self._sum))
        self._cursor.close()
        return named


def _predicate(node: Node, position: int) -> Predicate:
    if isinstance(node, Predicate):
        return node
    raise RuleError(f"the value at position {position} stands alone: compare it with another")


def _value(node: Node, position: int) -> Value:
    if isinstance(node, Value):
        return node
    raise RuleError(f"a value is expected at position {position}, not a condition")
