"""How values are written in the descriptions: numbers, truths, durations, times."""

import re
from datetime import UTC, datetime
from xml.sax.saxutils import escape

_NEVER_ENDING = "P10675199DT2H48M5.4775807S"
_NEVER_ENDING_MS = 10675199 * 86_400_000
_DURATION = re.compile(
    r"P(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})W)?(?:(\d{1,9})D)?"
    r"(?:T(?:(\d{1,12})H)?(?:(\d{1,12})M)?(?:(\d{1,15})(?:\.(\d{1,9}))?S)?)?",
    re.ASCII,
)
_UNITS = (365 * 86_400_000, 30 * 86_400_000, 7 * 86_400_000, 86_400_000, 3_600_000, 60_000, 1000)
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    """For an element or an attribute in double quotes; what XML cannot hold is replaced."""
    return escape(_NOT_XML.sub("\ufffd", text), {'"': "&quot;", "\r": "&#13;"})


def read_boolean(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError("true or false")
    return text.lower() in ("true", "1")


def write_boolean(value: bool) -> str:
    return "true" if value else "false"


def read_number(text: str) -> int:
    if not re.fullmatch(r"-?\d{1,18}", text, re.ASCII):
        raise ValueError("a whole number")
    return int(text)


def read_duration(text: str) -> int | None:
    """Milliseconds; None is without end, which the service writes as its longest duration."""
    found = _DURATION.fullmatch(text)
    if found is None or text[-1] in "PT":
        raise ValueError("an ISO 8601 duration such as PT1M")
    *whole, fraction = found.groups(default="0")
    total = sum(int(count) * unit for count, unit in zip(whole, _UNITS, strict=True))
    total += int(fraction.ljust(3, "0")[:3])
    return None if total >= _NEVER_ENDING_MS else total


def write_duration(value: int | None) -> str:
    if value is None:
        return _NEVER_ENDING
    days, rest = divmod(value, 86_400_000)
    hours, rest = divmod(rest, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    seconds = f"{rest / 1000:.3f}".rstrip("0").rstrip(".")
    clock = [f"{hours}H" * (hours > 0), f"{minutes}M" * (minutes > 0), f"{seconds}S" * (rest > 0)]
    time = "".join(clock)
    date = f"{days}D" if days else ""
    return f"P{date}T{time}" if time else f"P{date or 'T0S'}"


def write_time(value: int) -> str:
    moment = datetime.fromtimestamp(value / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
