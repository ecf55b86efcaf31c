"""What may be shown of a value: nothing secret, nothing that cannot be printed, nothing endless.

A field is masked whole when its name suggests a secret. What remains is shown as JSON knows it, and
every text in it is looked through for credentials. A lease id is cut: who has a whole one can speak
for the service that does the work.
"""

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import islice

from lucius_outbox.redaction import redacted

MASK = "***"
_LEASE_SHOWN = 8
_MAX_DEPTH = 6
_MAX_ITEMS = 100
_MAX_BITS = 256
_SECRET_NAME = re.compile(
    r"(?i)token|secret|passw|pwd|passphrase|authori[sz]ation|credential|cookie|signature|key"
    r"|connection|conn_?str|dsn|^sig$"
)
_LEASE_NAME = re.compile(r"(?i)lease_?id")
_LEASE_IN_TEXT = re.compile(
    rf"(?i)((?:lease_?id\W{{1,6}}|\.\d+\.)[0-9a-f]{{{_LEASE_SHOWN}}})[0-9a-f]{{24}}"
)
# Nothing that `redacted` or the search for leases could change: both need other characters.
_HARMLESS = re.compile(r"(?ia)(?!.*lease)[\w-]{0,200}")


def is_secret(name: str) -> bool:
    """Whether the name of a field suggests that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


def shown_text(text: str) -> str:
    if _HARMLESS.fullmatch(text):
        return text
    return redacted(_LEASE_IN_TEXT.sub("\\1\N{HORIZONTAL ELLIPSIS}", text))


def shown_field(name: str, value: object, *, is_known: bool = False) -> object:
    """The value of a field, as JSON can hold it. `is_known`: the field is documented and holds no
    secret, whatever its name suggests."""
    if value is None:
        return None
    if is_secret(name) and not is_known:
        return MASK
    if _LEASE_NAME.search(name):
        return _shortened(value)
    return shown(value)


def shown(value: object) -> object:
    return _shown(value, _MAX_DEPTH)


def unprintable(value: object) -> str:
    return f"<unprintable {type(value).__name__}>"


def _shortened(value: object) -> str:
    text = str(shown(value))
    return text[:_LEASE_SHOWN] + "\N{HORIZONTAL ELLIPSIS}"


def _shown(value: object, depth: int) -> object:
    """Never raises: a value may have methods of any kind, even broken ones."""
    try:
        return _converted(value, depth)
    except Exception:
        return unprintable(value)


def _converted(value: object, depth: int) -> object:
    if isinstance(value, str):
        return shown_text(str(value))
    if value is None or isinstance(value, (bool, int, float)):
        return _number(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<{len(value)} bytes>"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    return _many(value, depth)


def _number(value: float | None) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value) if value.bit_length() <= _MAX_BITS else "<a huge number>"
    return value


def _many(value: object, depth: int) -> object:
    if depth == 0:
        return f"<{type(value).__name__}>"
    fields = getattr(value, "_asdict", None)
    if isinstance(value, tuple) and callable(fields):
        value = fields()
    if isinstance(value, Mapping):
        return _mapping(value.items(), depth - 1)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_shown(item, depth - 1) for item in islice(value, _MAX_ITEMS)]
    return shown_text(str(value))


def _mapping(items: Iterable[tuple[object, object]], depth: int) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in islice(items, _MAX_ITEMS):
        name = str(key)
        is_plain = not (is_secret(name) or _LEASE_NAME.search(name))
        found[shown_text(name)] = _shown(value, depth) if is_plain else shown_field(name, value)
    return found
