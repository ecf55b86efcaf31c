"""Text that every catalogue can keep."""

from collections.abc import Iterable
from typing import Any

from lucius_artifacts.errors import Invalid


def require_storable(fields: Iterable[tuple[str, Any]]) -> None:
    """`Invalid` for what PostgreSQL refuses: so a request that cannot work says so on all."""
    for field, value in fields:
        if not isinstance(value, str) or (value.isascii() and "\0" not in value):
            continue
        if "\0" in value:
            raise Invalid(field, "holds a NUL character")
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise Invalid(field, "holds half of a surrogate pair") from error
