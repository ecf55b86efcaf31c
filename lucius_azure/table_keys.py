"""Names in the characters that keys of tables and names of blobs allow.

A key is made of parts that are joined by `!`. In a part, letters, digits and `._-` stand for
themselves, every other character is `~XX` for each of its UTF-8 bytes, and a part that would be
longer than 160 characters is `~~` with its SHA-256. `!` sorts below all of them, so keys sort as
their parts do. Different parts have different keys.
"""

import hashlib
import re

PART_LIMIT = 160
_SAFE = re.compile(r"[A-Za-z0-9._-]*")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")


def key(*parts: str) -> str:
    return "!".join([part(text) for text in parts])


def part(text: str) -> str:
    if len(text) <= PART_LIMIT and _SAFE.fullmatch(text):
        return text
    escaped = _UNSAFE.sub(_escape, text)
    if len(escaped) <= PART_LIMIT:
        return escaped
    return "~~" + hashlib.sha256(_utf8(text)).hexdigest()


def _escape(unsafe: re.Match[str]) -> str:
    return "".join(f"~{byte:02X}" for byte in _utf8(unsafe[0]))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
