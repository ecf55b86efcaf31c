"""Reads names and constants."""

import math
from collections.abc import Mapping

from servicebus_emulator.rules.errors import RuleError
from servicebus_emulator.rules.sql.cursor import Cursor
from servicebus_emulator.rules.sql.names import system_field
from servicebus_emulator.rules.sql.syntax import Constant, Property, SystemProperty
from servicebus_emulator.rules.sql.tokens import Token, TokenKind
from servicebus_emulator.rules.values import kind_of, plain

_WORDS = {"TRUE": True, "FALSE": False, "NULL": None}
_NAMES = (TokenKind.NAME, TokenKind.DELIMITED_NAME)
_LARGEST = 2**63 - 1


class Operands:
    """What stands alone in an expression; a parameter is the constant that was given for it."""

    def __init__(self, cursor: Cursor, parameters: Mapping[str, object]) -> None:
        self._cursor = cursor
        self._parameters = {name.lower(): plain(value) for name, value in parameters.items()}

    def read(self) -> Constant | Property | SystemProperty:
        if self._cursor.token.kind in _NAMES:
            return self.property()
        return self._constant(self._cursor.token)

    def property(self) -> Property | SystemProperty:
        first = self._name()
        if not self._cursor.took("."):
            return Property(first.text)
        name = self._name()
        match first.text.lower():
            case "user":
                return Property(name.text)
            case "sys":
                return SystemProperty(system_field(name.text, name.position))
        raise RuleError(
            f"{first.text}. at position {first.position} is neither sys. nor user.;"
            f" write [{first.text}.{name.text}] if the dot belongs to the name"
        )

    def _name(self) -> Token:
        if self._cursor.token.kind not in _NAMES:
            self._cursor.refuse("the name of a property")
        return self._cursor.advance()

    def _constant(self, token: Token) -> Constant:
        match token.kind:
            case TokenKind.TEXT:
                value: object = token.text
            case TokenKind.INTEGER | TokenKind.FLOAT:
                value = _number(token)
            case TokenKind.PARAMETER:
                value = self._parameter(token)
            case TokenKind.KEYWORD if token.text in _WORDS:
                value = _WORDS[token.text]
            case _:
                self._cursor.refuse("a value")
        self._cursor.advance()
        return Constant(value)

    def _parameter(self, token: Token) -> object:
        try:
            value = self._parameters[token.text.lower()]
        except KeyError:
            raise RuleError(f"{token.text} at position {token.position} has no value") from None
        if value is not None and kind_of(value) is None:
            raise RuleError(f"{token.text} cannot be compared: it is a {type(value).__name__}")
        return value


def _number(token: Token) -> int | float:
    if token.kind is TokenKind.INTEGER:
        integer = int(token.text)
        if integer <= _LARGEST:
            return integer
    else:
        number = float(token.text)
        if math.isfinite(number):
            return number
    raise RuleError(f"the number at position {token.position} is too large")
