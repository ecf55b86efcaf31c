"""Numbers and amounts, as people write them."""

import re
from collections.abc import Iterator
from decimal import Decimal

from sis_service.dates import dates
from sis_service.mention import Mention

_CURRENCY = r"(?:EUR|USD|GBP|CHF|SEK|NOK|DKK|PLN|CZK|JPY|CAD|AUD|US\$|[€$£¥])"
_TIGHT = r"'\u2019\u00a0\u202f"
_GROUPED = rf"[1-9]\d{{0,2}}(?P<by>[.,{_TIGHT}])\d{{3}}(?:(?P=by)\d{{3}}){{0,3}}"
# Two columns of a table look like one number with a space in it. Only after a currency, or before
# a decimal comma, a space parts thousands.
_SPACED = r"[1-9]\d{0,2}(?: \d{3}){1,4}(?:(?=,\d\d?(?!\d))|(?(before)|(?!)))"
_AMOUNT = re.compile(
    rf"(?<![\w.,/+-])(?<!\d:)(?P<before>{_CURRENCY}\s?)?(?P<sign>[-\u2212])?"
    rf"(?P<inner>{_CURRENCY}\s?)?(?P<digits>(?:{_SPACED}|{_GROUPED}|\d{{1,15}})(?:[.,]\d{{1,9}})?)"
    rf"(?:[.,][-\u2013]{{1,2}})?(?P<after>\s?{_CURRENCY})?(?P<percent>\s?(?:%|percent\b))?"
    r"(?![\w/-]|[:.,]\d)"
)
_NO_AMOUNT = re.compile(
    r"\+\d[\d ()/-]{6,}"  # a telephone number
    r"|\b[A-Z]{2}\d\d(?: ?[A-Z0-9]{4}){2,}(?: ?[A-Z0-9]{1,3})?\b"  # an IBAN
    r"|(?<![\w.,])0\d+\b(?![.,])"  # a number that does not count, as 0042
)
_SEPARATOR = re.compile(rf"[., {_TIGHT}]")


def amounts(text: str, *, percent: bool = False) -> Iterator[Mention]:
    """Numbers, with or without a currency; with `percent` those alone that are a percentage, and
    else none of these. Numbers in dates, telephone numbers and names of things are left out."""
    taken = [(date.start, date.end) for date in dates(text)]
    taken += [match.span() for match in _NO_AMOUNT.finditer(text)]
    for match in _AMOUNT.finditer(text):
        within = any(start < match.end() and match.start() < end for start, end in taken)
        if not within and bool(match["percent"]) is percent:
            yield Mention(match.start(), match.end(), _value(match))


def _value(match: re.Match[str]) -> float:
    is_money = bool(match["before"] or match["inner"] or match["after"])
    digits = match["digits"]
    decimal = _decimal_separator(digits, is_money=is_money)
    plain = "".join("." if c == decimal else c for c in digits if c.isdigit() or c == decimal)
    value = -Decimal(plain) if match["sign"] else Decimal(plain)
    return int(value) if value == value.to_integral_value() else float(value)


def _decimal_separator(digits: str, *, is_money: bool) -> str:
    """Empty if there is none. Of several kinds the last is it; one that comes twice is not. A
    single comma before three digits parts thousands, and so does a point in an amount of money:
    4,711 and EUR 4.711, but a weight of 4.711."""
    found = _SEPARATOR.findall(digits)
    if not found or found[-1] not in ".,":
        return ""
    last = found[-1]
    if len(found) > 1:
        return last if found.count(last) == 1 else ""
    parts_thousands = re.fullmatch(_GROUPED, digits) and (last == "," or is_money)
    return "" if parts_thousands else last
