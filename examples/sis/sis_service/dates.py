"""Dates, as people write them."""

import re
from collections.abc import Iterator
from datetime import date

from sis_service.mention import Mention

_MONTHS = (
    ("january", "januar", "jan", "jän"),
    ("february", "februar", "feb"),
    ("march", "märz", "mar", "mär", "mrz"),
    ("april", "apr"),
    ("may", "mai"),
    ("june", "juni", "jun"),
    ("july", "juli", "jul"),
    ("august", "aug"),
    ("september", "sept", "sep"),
    ("october", "oktober", "oct", "okt"),
    ("november", "nov"),
    ("december", "dezember", "dec", "dez"),
)
_NUMBERS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names}
_MONTH = rf"(?P<month>{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})\.?"
_DAY, _YEAR = r"(?P<day>\d{1,2})", r"(?P<year>\d{4})"
_FORMS = (
    rf"{_YEAR}(?P<by>[-/.])(?P<number>\d{{1,2}})(?P=by){_DAY}",
    rf"{_DAY}(?P<by>[-.])\s?(?P<number>\d{{1,2}})(?P=by)\s?{_YEAR}",
    rf"(?P<first>\d{{1,2}})/(?P<second>\d{{1,2}})/{_YEAR}",
    rf"{_DAY}(?:st|nd|rd|th|\.)?[\s-]*(?:of\s+|day\s+of\s+)?{_MONTH}[\s,-]*{_YEAR}",
    rf"{_MONTH}\s*{_DAY}(?:st|nd|rd|th)?,?\s+{_YEAR}",
)
_DATES = tuple(re.compile(rf"(?<![\w/-]){form}(?![\w/-])", re.IGNORECASE) for form in _FORMS)


def dates(text: str) -> Iterator[Mention]:
    """Each as its ISO form. What cannot be told for sure, as 03/04/2026, is none."""
    for form in _DATES:
        for match in form.finditer(text):
            found = _read(match.groupdict())
            if found is not None:
                yield Mention(match.start(), match.end(), found.isoformat())


def _read(parts: dict[str, str | None]) -> date | None:
    year = int(parts["year"] or 0)
    try:
        return date(year, *(_american_or_not(parts) if "first" in parts else _named(parts)))
    except ValueError:
        return None


def _named(parts: dict[str, str | None]) -> tuple[int, int]:
    name = parts.get("month")
    month = _NUMBERS[name.lower()] if name else int(parts["number"] or 0)
    return month, int(parts["day"] or 0)


def _american_or_not(parts: dict[str, str | None]) -> tuple[int, int]:
    """Month and day; with slashes both orders are common, so one of them must be impossible."""
    first, second = int(parts["first"] or 0), int(parts["second"] or 0)
    if first <= 12 and second <= 12 and first != second:
        raise ValueError("either may be the month")
    return (first, second) if second > 12 else (second, first)
