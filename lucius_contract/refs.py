"""Where documents lie, and which places a request may name.

A ref is `{"uri": …}`. It never carries a credential: services reach storage with their own.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from lucius_contract.canonical import walk
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.hosts import host_in, host_problem

ARTIFACT = "artifact"
HTTPS = "https"
REMOTE_SCHEMES = frozenset({HTTPS, "az", "s3", ARTIFACT})
LOCAL_SCHEMES = REMOTE_SCHEMES | {"file"}
URI_LIMIT = 2048

_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")
# Nearly every ref: nothing to decode, no user, port or query, no segment that begins with a dot.
_PLAIN = re.compile(
    r"(?P<scheme>az|s3|artifact|https)://(?P<place>[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*)"
    r"(/([A-Za-z0-9_~+=,-][A-Za-z0-9_.~+=,-]*)?)*"
)
_NO_FOLDER = re.compile(r"[%/\\\x00-\x1f\x7f-\x9f]|\.\Z")
_URI_IN_TEXT = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>]+")
_SIGNATURES = frozenset({"sig", "x-amz-signature", "x-amz-security-token", "x-goog-signature"})


@dataclass(frozen=True, slots=True)
class RefPolicy:
    """What an operator allows refs to name.

    `places` holds hosts, containers or buckets; one that begins with a dot allows every host below
    that domain; None allows any. Names of artifacts are no places: they are the tenant's own.
    `file` belongs to `schemes` only where everything runs on one machine.
    """

    schemes: frozenset[str] = REMOTE_SCHEMES
    places: frozenset[str] | None = None
    allow_private_addresses: bool = False


def check_ref(uri: str, policy: RefPolicy, pointer: str) -> None:
    """Refuse a uri that is malformed (REF_INVALID) or against the policy (REF_FORBIDDEN)."""
    plain = _PLAIN.fullmatch(uri)
    if plain is not None and plain["scheme"] in policy.schemes and len(uri) <= URI_LIMIT:
        _check_place(plain["scheme"], plain["place"].lower(), policy, pointer)
        return
    parts = _split(uri, pointer)
    if parts.scheme not in policy.schemes:
        allowed = ", ".join(sorted(policy.schemes))
        raise _forbidden(pointer, f"scheme {parts.scheme!r} is not allowed (allowed: {allowed})")
    if parts.username is not None or _is_signed(parts):
        raise _forbidden(
            pointer, "carries a credential; give the bare uri, services have their own"
        )
    if parts.scheme == "file":
        return
    place = host_in(uri) if parts.scheme == HTTPS else (parts.hostname or "").lower()
    if place is None:
        raise _invalid(pointer, "names no host that is written in letters, digits, dots and dashes")
    _check_place(parts.scheme, place, policy, pointer)


def check_refs(input_uri: str, output_uri: str, policy: RefPolicy) -> None:
    """Refuse the refs of a request as `check_ref` does, with pointers into the request."""
    check_ref(input_uri, policy, "/input_ref/uri")
    check_ref(output_uri, policy, "/output_ref/uri")


def _check_place(scheme: str, place: str, policy: RefPolicy, pointer: str) -> None:
    if scheme == ARTIFACT:
        return
    if policy.places is not None and not _within(place, policy.places):
        raise _forbidden(pointer, f"{place!r} is not on the list of allowed places")
    if scheme == HTTPS:
        problem = host_problem(place, allow_private=policy.allow_private_addresses)
        if problem is not None:
            raise _forbidden(pointer, f"the host {place!r} {problem}")


@lru_cache(maxsize=4096)
def tenant_folder(tenant_id: str) -> str:
    """The segment of a uri that is the folder of a tenant.

    Decoded once, as a uri is, it is the tenant. One that cannot name a folder on every storage, as
    `..`, `a/b` or `Co.`, is encoded twice, so that what is decoded once still can. So is one with a
    percent sign, for no two tenants share a folder.
    """
    name = tenant_id
    if _NO_FOLDER.search(tenant_id):
        encoded = quote(tenant_id, safe="")
        name = encoded.replace(".", "%2E") if encoded.endswith(".") else encoded
    return quote(name, safe="")


def check_no_credentials(value: Any, pointer: str) -> None:
    """Refuse a JSON value in which some text holds a uri with a password or a signature."""
    found = list(_credentials(value, pointer))
    if found:
        raise ContractError(ErrorCode.REF_FORBIDDEN, "a credential is inside the payload", found)


def _split(uri: str, pointer: str) -> SplitResult:
    if len(uri) > URI_LIMIT:
        raise _invalid(pointer, f"is longer than {URI_LIMIT} characters")
    if _UNPRINTABLE.search(uri):
        raise _invalid(pointer, "holds white space or control characters; percent-encode them")
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError as error:
        raise _invalid(pointer, str(error)) from error
    if not parts.scheme:
        raise _invalid(pointer, "has no scheme, as in az://container/name")
    if parts.scheme == "file":
        if parts.netloc or not parts.path.startswith("/"):
            raise _invalid(pointer, "a file uri has the form file:///absolute/path")
    elif not parts.hostname:
        raise _invalid(pointer, "names no host, container or bucket")
    if ".." in unquote(parts.path).replace("\\", "/").split("/"):
        raise _invalid(pointer, "has a '..' segment")
    return parts


def _is_signed(parts: SplitResult) -> bool:
    return any(name.lower() in _SIGNATURES for name, _ in parse_qsl(parts.query))


def _within(place: str, allowed: frozenset[str]) -> bool:
    return place in allowed or any(
        entry.startswith(".") and place.endswith(entry) for entry in allowed
    )


def _credentials(value: Any, pointer: str) -> Iterator[Problem]:
    for where, found in walk(value, pointer):
        if isinstance(found, str) and any(map(_has_secret, _URI_IN_TEXT.findall(found))):
            yield Problem(where, "holds a uri with a credential; give the bare uri")


def _has_secret(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return parts.password is not None or _is_signed(parts)


def _invalid(pointer: str, message: str) -> ContractError:
    return ContractError(
        ErrorCode.REF_INVALID, "a ref is not well-formed", [Problem(pointer, message)]
    )


def _forbidden(pointer: str, message: str) -> ContractError:
    return ContractError(
        ErrorCode.REF_FORBIDDEN, "a ref is against policy", [Problem(pointer, message)]
    )
