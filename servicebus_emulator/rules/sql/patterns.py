"""The patterns of LIKE."""

import re
from collections.abc import Iterator


def like_pattern(pattern: str, escape: str | None) -> re.Pattern[str]:
    """What LIKE means, for `fullmatch`. `ValueError` for a pattern or an escape that is wrong.

    Each piece between two % is taken where it is found first and never again (an atomic group):
    that is enough for a match, and time stays linear in the text whatever the pattern.
    """
    if escape is not None and len(escape) != 1:
        raise ValueError("the text of ESCAPE must have one character")
    pieces = "".join(_translated(pattern, escape)).split("\0")
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    first, *middle, last = pieces
    found = "".join(f"(?>.*?{piece})" for piece in middle if piece)
    return re.compile(f"{first}{found}.*{last}", re.DOTALL)


def _translated(pattern: str, escape: str | None) -> Iterator[str]:
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, None)
            if escaped is None:
                raise ValueError("the pattern ends with its escape character")
            yield _literal(escaped)
        elif character == "%":
            yield "\0"
        else:
            yield "." if character == "_" else _literal(character)


def _literal(character: str) -> str:
    return r"\x00" if character == "\0" else re.escape(character)
