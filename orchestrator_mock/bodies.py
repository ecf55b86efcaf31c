"""Bodies of messages, before anybody knows whether they are what they should be."""

import json
from collections.abc import Mapping
from typing import Any

_TOKEN = "callback_token"  # noqa: S105 - the name of a member


def json_object(raw: bytes) -> Mapping[str, Any] | None:
    """As it may be recorded: a callback token that a service repeats is not in it."""
    try:
        value = json.loads(raw, object_hook=_without_token)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _without_token(members: dict[str, Any]) -> dict[str, Any]:
    return {**members, _TOKEN: "***"} if _TOKEN in members else members
