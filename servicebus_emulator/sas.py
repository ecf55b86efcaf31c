"""Shared access signatures: whoever knows a key signs tokens for a resource and a time.

Texts of `Unauthorized` go to the peer and into logs: they name no key, no token and no signature.
"""

import base64
import hmac
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import unquote, unquote_plus, urlsplit

_SCHEME = "sharedaccesssignature"
_MOST_DIGITS = 12  # of an expiry in seconds


class Unauthorized(Exception):
    """The token does not let its holder do what is asked."""

    def __init__(self, description: str) -> None:
        super().__init__(description)
        self.description = description


class Right(StrEnum):
    """As Service Bus names them; `MANAGE` is to make, change and delete entities, and all that is
    asked over HTTP."""

    LISTEN = "Listen"
    SEND = "Send"
    MANAGE = "Manage"


class Grant(NamedTuple):
    """A right to every entity whose path begins so, in whatever case."""

    right: Right
    prefix: str


class _Token(NamedTuple):
    """`resource` as it stands in the token: the signature is over its encoded form."""

    resource: str
    signature: str
    expiry: str
    key_name: str


class Keys:
    """The keys of a namespace by their names. Without any everything is let through. A key for
    which no grants are given has every right."""

    def __init__(
        self,
        keys: Mapping[str, str] | None = None,
        grants: Mapping[str, Sequence[Grant]] | None = None,
    ) -> None:
        self._keys = {name: key.encode() for name, key in (keys or {}).items()}
        self._grants = dict(grants or {})

    def __len__(self) -> int:
        return len(self._keys)

    def __repr__(self) -> str:
        return f"Keys({', '.join(self._keys)})"

    def items(self) -> list[tuple[str, str]]:
        return [(name, key.decode()) for name, key in self._keys.items()]

    def check(self, token: str, resource: str, now_ms: int, right: Right | None = None) -> None:
        """`resource` is a URI, or a bare path. `Unauthorized`: the token is not signed with one of
        the keys, has expired, is for another resource, or its key has not that right there."""
        if not self._keys:
            return
        found = _parse(token)
        self._check_signature(found)
        if now_ms >= _expiry_ms(found.expiry):
            raise Unauthorized("the token has expired")
        if not _covers(unquote_plus(found.resource), resource):
            raise Unauthorized("the token is for another resource")
        if right is not None and not self._has_right(found, resource, right):
            raise Unauthorized(f"the key has no right to {right.lower()} here")

    def _has_right(self, token: _Token, resource: str, right: Right) -> bool:
        grants = self._grants.get(self._name_of(token.key_name))
        _, path = _place(resource)
        return grants is None or any(
            grant.right is right and path.startswith(grant.prefix.lower()) for grant in grants
        )

    def _check_signature(self, token: _Token) -> None:
        name = self._name_of(token.key_name)
        key = self._keys.get(name, b"")
        signed = f"{token.resource}\n{token.expiry}".encode()
        expected = base64.b64encode(hmac.digest(key, signed, "sha256"))
        is_equal = hmac.compare_digest(expected, token.signature.encode())
        if name not in self._keys or not is_equal:
            raise Unauthorized("the token is not signed with a key of this namespace")

    def _name_of(self, written: str) -> str:
        """The Python client encodes the name of the key twice."""
        return written if written in self._keys else unquote_plus(written)


def _parse(text: str) -> _Token:
    scheme, _, rest = text.strip().partition(" ")
    if scheme.lower() != _SCHEME:
        raise Unauthorized("a SharedAccessSignature is needed")
    parts = [part.partition("=") for part in rest.split("&")]
    fields = {name: value for name, _, value in parts}
    if len(fields) != len(parts) or not fields.keys() >= {"sr", "sig", "se", "skn"}:
        raise Unauthorized("the token needs each of sr, sig, se and skn once")
    signature, key_name = unquote(fields["sig"]), unquote_plus(fields["skn"])
    return _Token(fields["sr"], signature, fields["se"], key_name)


def _expiry_ms(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Unauthorized("the expiry of the token is not a number of seconds")
    return int(text) * 1000


def _covers(granted: str, asked: str) -> bool:
    """Ports do not count: clients name the same place with and without."""
    granted_host, granted_path = _place(granted)
    host, path = _place(asked)
    if granted_host is not None and host is not None and granted_host != host:
        return False
    return not granted_path or f"{path}/".startswith(f"{granted_path}/")


def _place(resource: str) -> tuple[str | None, str]:
    if "://" not in resource:
        return None, resource.strip("/").lower()
    try:
        parts = urlsplit(resource)
    except ValueError as error:
        raise Unauthorized("the resource is not a URI") from error
    return parts.hostname, unquote(parts.path).strip("/").lower()
