"""A place in the words of an expression."""

from typing import NoReturn

from servicebus_emulator.rules.errors import RuleError
from servicebus_emulator.rules.sql.tokens import Token, TokenKind, tokens_of

MAX_NESTING = 32

_WORDS = (TokenKind.KEYWORD, TokenKind.SYMBOL)


class Cursor:
    """Moves from left to right. The nesting of parentheses is bounded, so that neither reading nor
    judging can run out of stack."""

    def __init__(self, expression: str) -> None:
        self._tokens = list(tokens_of(expression))
        self._index = 0
        self._nesting = 0

    @property
    def token(self) -> Token:
        return self._tokens[self._index]

    @property
    def position(self) -> int:
        return self.token.position

    def advance(self) -> Token:
        token = self.token
        self._index += 1
        return token

    def is_at(self, word: str) -> bool:
        return self.token.text == word and self.token.kind in _WORDS

    def is_call(self) -> bool:
        if self.token.kind is not TokenKind.NAME:
            return False
        following = self._tokens[self._index + 1]
        return following.kind is TokenKind.SYMBOL and following.text == "("

    def took(self, word: str) -> bool:
        is_here = self.is_at(word)
        self._index += is_here
        return is_here

    def took_any(self, words: tuple[str, ...]) -> str | None:
        """The word of these that was here, and is behind the cursor now."""
        text = self.token.text
        return text if text in words and self.took(text) else None

    def open(self) -> None:
        if not self.took("("):
            self.refuse("(")
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise RuleError(
                f"more than {MAX_NESTING} parentheses are nested at position {self.position}"
            )

    def close(self) -> None:
        if not self.took(")"):
            self.refuse(")")
        self._nesting -= 1

    def refuse(self, expected: str) -> NoReturn:
        raise RuleError(
            f"{expected} is expected at position {self.position}, not {self.token.text!r}"
        )
