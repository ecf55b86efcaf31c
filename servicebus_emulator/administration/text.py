"""How values are written in the descriptions: numbers, truths, times."""

import re
from datetime import UTC, datetime
from xml.sax.saxutils import escape

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


def write_time(value: int) -> str:
    moment = datetime.fromtimestamp(value / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
