"""Addresses that are their own credential: they say what may be done and until when, and hold a
signature of it.

A route that is asked with such an address gives its path and its query to `accept_part` or
`accept_read`, and does what the answer allows.
"""

import hmac
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from hashlib import sha256

from lucius_artifacts.errors import Refused

SHORTEST_KEY = 32
_PURPOSE = "lucius artifacts url 1"
_NUMBER = re.compile(r"[0-9]{1,15}")


class SignatureRefused(Refused):
    """The address is not one of ours, was altered, or has expired."""


@dataclass(frozen=True, slots=True)
class Offered:
    """How an object is to be handed out."""

    media_type: str
    file_name: str


@dataclass(frozen=True, slots=True)
class _Grant:
    method: str
    key: str
    expires: int
    number: int = 0
    length: int = 0
    media_type: str = ""
    file_name: str = ""

    def encoded(self) -> bytes:
        """No two grants give the same bytes."""
        return json.dumps([_PURPOSE, *astuple(self)]).encode()


class UrlSigner:
    """The first key signs and all of them verify, so that keys can be replaced: add the new one at
    the end everywhere, then move it to the front, then drop the old one."""

    def __init__(self, keys: Sequence[bytes], clock: Callable[[], datetime]) -> None:
        if not keys or min(map(len, keys)) < SHORTEST_KEY:
            raise ValueError(
                f"urls are signed with one or more keys of at least {SHORTEST_KEY} bytes"
            )
        self._keys = tuple(keys)
        self._clock = clock

    def sign_part(self, key: str, number: int, length: int, expires_at: datetime) -> dict[str, str]:
        """The query of an address to which this part, of this length, may be put."""
        grant = _Grant("PUT", key, _seconds(expires_at), number=number, length=length)
        return {"expires": str(grant.expires), "length": str(length), **self._signature(grant)}

    def accept_part(self, key: str, number: int, query: Mapping[str, str]) -> int:
        """The length that the part must have. `SignatureRefused`, and nothing may be written."""
        expires, length = _number(query, "expires"), _number(query, "length")
        self._verify(_Grant("PUT", key, expires, number=number, length=length), query)
        return length

    def sign_read(
        self, key: str, media_type: str, file_name: str, expires_at: datetime
    ) -> dict[str, str]:
        """The query of an address from which the object may be read."""
        grant = _Grant("GET", key, _seconds(expires_at), media_type=media_type, file_name=file_name)
        said = {"media_type": media_type, "file_name": file_name}
        return {"expires": str(grant.expires), **said, **self._signature(grant)}

    def accept_read(self, key: str, query: Mapping[str, str]) -> Offered:
        """As what the object is to be sent. `SignatureRefused`, and nothing may be sent."""
        expires, offered = _number(query, "expires"), _offered(query)
        media_type, file_name = offered.media_type, offered.file_name
        self._verify(_Grant("GET", key, expires, media_type=media_type, file_name=file_name), query)
        return offered

    def _signature(self, grant: _Grant) -> dict[str, str]:
        return {"signature": _signed(self._keys[0], grant)}

    def _verify(self, grant: _Grant, query: Mapping[str, str]) -> None:
        given = query.get("signature", "").encode(errors="replace")
        if not any(hmac.compare_digest(given, _signed(key, grant).encode()) for key in self._keys):
            raise SignatureRefused("the address was altered, or is not one of this service")
        if self._clock().timestamp() >= grant.expires:
            raise SignatureRefused("the address has expired: ask for a new one")


def _signed(key: bytes, grant: _Grant) -> str:
    return hmac.new(key, grant.encoded(), sha256).hexdigest()


def _seconds(expires_at: datetime) -> int:
    return int(expires_at.timestamp())


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if _NUMBER.fullmatch(text) is None:
        raise SignatureRefused(f"the address lacks {name}")
    return int(text)


def _offered(query: Mapping[str, str]) -> Offered:
    try:
        return Offered(query["media_type"], query["file_name"])
    except KeyError as error:
        raise SignatureRefused(f"the address lacks {error.args[0]}") from error
