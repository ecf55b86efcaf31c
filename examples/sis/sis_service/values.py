"""Values of a JSON type, in a statement."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from sis_service.amounts import amounts
from sis_service.dates import dates
from sis_service.mention import Mention
from sis_service.statements import Statement

Reader = Callable[[Statement], Iterable[Mention]]

_RATE = re.compile(r"(?i)\b(?:percent|percentage|rate)\b|%")
_TRUTHS = {"yes": True, "true": True, "ja": True, "no": False, "false": False, "nein": False}
_TRUTH = re.compile(rf"(?i)\b(?:{'|'.join(_TRUTHS)})(?=\W*\Z)")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URI = re.compile(r"\bhttps?://[^\s<>\"]+[\w/]")
_WORD = r"[^\W_a-z][\w&./'\u2019-]*"
_NAME = rf"{_WORD}(?: (?:(?:of|and|the|&|de|von|van|der|la) )?{_WORD})*"
_ABBREVIATED = ("Ltd.", "Inc.", "Co.", "Corp.", "Jr.", "Sr.")


def reader_of(schema: Mapping[str, Any], names: Sequence[str], about: str) -> Reader | None:
    """How a value for this schema is read; None for what cannot be. `names` are the words that a
    document may use for it, `about` all that is said of it."""
    kind = schema.get("type") or "string"
    percent = _RATE.search(about) is not None
    if members := _members(schema):
        return lambda statement: _member_mentions(statement.said, members)
    if kind == "string":
        return _string_reader(schema.get("format"), names)
    if kind == "number":
        return lambda statement: _numbers(statement.said, percent=percent)
    if kind == "integer":
        return lambda statement: _whole(_numbers(statement.said, percent=percent))
    return _truths if kind == "boolean" else None


def is_free_text(schema: Mapping[str, Any]) -> bool:
    """Whether a whole statement may be the value."""
    is_text = (schema.get("type") or "string") == "string"
    return is_text and not {"format", "enum", "const"} & schema.keys()


def tells_its_kind(schema: Mapping[str, Any]) -> bool:
    """Whether a value can be told from all others by its looks."""
    return "enum" in schema or schema.get("format") in ("email", "uri")


def _string_reader(form: str | None, names: Sequence[str]) -> Reader | None:
    if form is None:
        named = [form for name in names if name for form in _named(name)]
        return lambda statement: _texts(statement, named)
    known = _FORMATS.get(form)
    return None if known is None else lambda statement: known(statement.said)


def _matches(form: re.Pattern[str], text: str) -> Iterator[Mention]:
    return (Mention(match.start(), match.end(), match[0]) for match in form.finditer(text))


_FORMATS: dict[str, Callable[[str], Iterable[Mention]]] = {
    "date": dates,
    "email": lambda text: _matches(_EMAIL, text),
    "uri": lambda text: _matches(_URI, text),
}


def _members(schema: Mapping[str, Any]) -> list[str]:
    """Texts of an enum, those first that may contain another."""
    allowed = schema.get("enum", [schema["const"]] if "const" in schema else [])
    return sorted((one for one in allowed if isinstance(one, str) and one), key=len, reverse=True)


def _member_mentions(text: str, members: list[str]) -> Iterator[Mention]:
    """`NOT_PAID` is spelled `not paid` as well."""
    forms = [re.escape(one).replace("_", "[_ -]") for one in members]
    for match in re.finditer(rf"(?i)(?<!\w)(?:{'|'.join(f'({f})' for f in forms)})(?!\w)", text):
        yield Mention(match.start(), match.end(), members[(match.lastindex or 1) - 1])


def _numbers(text: str, *, percent: bool) -> Iterable[Mention]:
    """Percentages where a rate is asked for, else other numbers; each where there is no other."""
    return list(amounts(text, percent=percent)) or amounts(text, percent=not percent)


def _whole(found: Iterable[Mention]) -> Iterator[Mention]:
    return (one for one in found if isinstance(one.value, int))


def _truths(statement: Statement) -> Iterator[Mention]:
    """Only at the end, as in `Approved: no`: elsewhere a `no` may belong to anything."""
    match = _TRUTH.search(statement.said)
    if match is not None:
        yield Mention(match.start(), match.end(), _TRUTHS[match[0].lower()])


def _named(name: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Two ways to put it: `our customer Acme Ltd.` and `Acme Ltd. (the customer)`."""
    words = rf"(?i:{' '.join(map(re.escape, name.split()))})"
    return (
        re.compile(rf"(?<!\w){words}(?: (?:is|was|name))?,? (?P<value>{_NAME})"),
        re.compile(rf"(?P<value>{_NAME})(?:,| \() ?(?:the ){words}(?!\w)"),
    )


def _texts(statement: Statement, named: Sequence[re.Pattern[str]]) -> Iterator[Mention]:
    """What stands behind a label, or beside the name of the thing."""
    said = statement.said
    if statement.label:
        start = said.index(": ", len(statement.label)) + 2
        yield Mention(start, len(said), said[start:])
        return
    for form in named:
        for match in form.finditer(said):
            start, value = match.start("value"), _without_stop(match["value"])
            yield Mention(start, start + len(value), value, is_named=True)


def _without_stop(name: str) -> str:
    return name if name.endswith(_ABBREVIATED) else name.rstrip(".")
