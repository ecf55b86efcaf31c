"""What every storage asks of keys and parts, so that none has to escape anything."""

import re

from lucius_artifacts.errors import Invalid

_KEY = re.compile(r"[A-Za-z0-9_-]{1,128}")


def checked_key(key: str) -> str:
    """One that is the name of a file, of a blob and a part of an address as it is."""
    if _KEY.fullmatch(key) is None:
        raise Invalid(
            "key", "is not the key of an object: up to 128 letters, digits, dashes and underscores"
        )
    return key


def check_part(number: int, length: int, most_parts: int, largest_part: int) -> None:
    if not 1 <= number <= most_parts:
        raise Invalid("part", f"must have a number from 1 to {most_parts}")
    if not 1 <= length <= largest_part:
        raise Invalid("part", f"must have from 1 to {largest_part} bytes")


def not_as_long(number: int, length: int) -> Invalid:
    return Invalid("part", f"{number} does not have the {length} bytes that it should have")
