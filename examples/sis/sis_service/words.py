"""The words of a text, and those of a question that say what it is about."""

import re

_WORD = re.compile(r"[^\W_]+")
_EMPTY = frozenset(
    _WORD.findall(
        "a an and any are at be been by can did do does for from had has have how in is it its"
        " many may much must name of on or our should that the there this to was were what when"
        " where which who whom whose why will with your"
    )
)
_STEM = 6
"""As many letters of a word as tell it from others: `delivery` and `delivered` are one."""


_KINDS = ("date", "day", "number", "id", "amount", "sum", "value")
_KIND = re.compile(rf"(?i)\b(?:{'|'.join(_KINDS)})\b")


def words_of(text: str) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in map(_singular, _WORD.findall(text.lower()))) - _EMPTY


def telling_words(question: str) -> frozenset[str]:
    """Without those that only say of what kind the answer is: that is looked at by itself, and to
    be a date is not enough for a date of birth."""
    return words_of(without_kinds(question)) or words_of(question)


def without_kinds(question: str) -> str:
    return " ".join(_KIND.sub(" ", question).split())


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") else word
