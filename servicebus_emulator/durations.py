"""Durations as Service Bus writes them: ISO 8601, years and months as so many days."""

import re

_NEVER_ENDING = "P10675199DT2H48M5.4775807S"
_NEVER_ENDING_MS = 10675199 * 86_400_000
_DURATION = re.compile(
    r"P(?:(\d{1,9})Y)?(?:(\d{1,9})M)?(?:(\d{1,9})W)?(?:(\d{1,9})D)?"
    r"(?:T(?:(\d{1,12})H)?(?:(\d{1,12})M)?(?:(\d{1,15})(?:\.(\d{1,9}))?S)?)?",
    re.ASCII,
)
_UNITS = (365 * 86_400_000, 30 * 86_400_000, 7 * 86_400_000, 86_400_000, 3_600_000, 60_000, 1000)


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
