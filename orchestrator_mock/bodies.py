"""Bodies of messages, before anybody knows whether they are what they should be."""

import json
from collections.abc import Mapping
from typing import Any


def json_object(raw: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
