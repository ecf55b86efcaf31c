"""Kinds of values that say which Azure storage account to use.

A connection string holds a key: what is refused is never shown again.
"""

import base64
import binascii
from functools import partial

from lucius_settings.endpoints import read_endpoint
from lucius_settings.kinds import Kind, Refused
from lucius_settings.secret import Secret

_SERVICES = ("Blob", "Queue", "File", "Table", "Dfs")
_ENDPOINTS = tuple(f"{service}Endpoint" for service in _SERVICES)
_SECONDARY = tuple(f"{service}SecondaryEndpoint" for service in _SERVICES)
_DEVELOPMENT = "UseDevelopmentStorage"
_NAMES = (
    "DefaultEndpointsProtocol",
    "AccountName",
    "AccountKey",
    *_ENDPOINTS,
    *_SECONDARY,
    "SharedAccessSignature",
    "EndpointSuffix",
    _DEVELOPMENT,
)
_BY_LOWER_CASE = {name.lower(): name for name in _NAMES}
_RULE = (
    "a connection string of a storage account, as DefaultEndpointsProtocol=https;AccountName=...;"
    "AccountKey=..., or with its endpoints and a SharedAccessSignature"
)


def _read_connection(text: str, service: str | None = None) -> Secret:
    """In the one form that all clients read: they differ in what else they understand."""
    parts = _parts(text)
    if _DEVELOPMENT in parts:
        _check_development(parts)
    else:
        _check_addresses(parts)
        _check_credential(parts)
        _check_service(parts, service)
    return Secret(";".join(f"{name}={value}" for name, value in parts.items()))


STORAGE_CONNECTION = Kind(_RULE, _read_connection)


def storage_connection(service: str) -> Kind:
    """The same, where it is for one of the account's services and must name that one."""
    return Kind(_RULE, partial(_read_connection, service=service))


def storage_endpoint(service: str) -> Kind:
    """The address of one of an account's services; who may use it is a matter of identity."""
    rule = (
        f"the https address of the account's {service} service, as"
        f" https://name.{service}.core.windows.net"
    )

    def read(text: str) -> str:
        host = read_endpoint(text, rule).hostname or ""
        if not text.lower().startswith("https:"):
            raise Refused(f"does not use https, which an identity needs; must be {rule}")
        named = {other.lower() for other in _SERVICES if f".{other.lower()}." in host}
        if named - {service}:
            raise Refused(f"is the address of another service; must be {rule}")
        return text.rstrip("/")

    return Kind(rule, read)


def _parts(text: str) -> dict[str, str]:
    """By the names that the clients know."""
    parts: dict[str, str] = {}
    for part in text.strip().rstrip(";").split(";"):
        written, separator, value = part.partition("=")
        name = _BY_LOWER_CASE.get(written.strip().lower())
        if not separator or name is None:
            raise _refused("has a part that is none of a connection string")
        if name in parts:
            raise _refused("names a part twice")
        parts[name] = value.strip().removeprefix("?")  # as a signature is often copied
        if not parts[name]:
            raise _refused(f"has {name} without a value")
    return parts


def _check_development(parts: dict[str, str]) -> None:
    if len(parts) > 1 or parts[_DEVELOPMENT].lower() != "true":
        raise _refused(f"has more, or something else, than {_DEVELOPMENT}=true")
    parts[_DEVELOPMENT] = "true"


def _check_addresses(parts: dict[str, str]) -> None:
    for name in (*_ENDPOINTS, *_SECONDARY):
        if name in parts:
            read_endpoint(parts[name], _RULE)
    is_plain = parts.get("DefaultEndpointsProtocol", "https").lower() != "https"
    if is_plain and not any(name in parts for name in _ENDPOINTS):
        raise _refused("does not use https")


def _check_credential(parts: dict[str, str]) -> None:
    key, signature = parts.get("AccountKey"), parts.get("SharedAccessSignature")
    if (key is None) == (signature is None):
        raise _refused("has neither or both of AccountKey and SharedAccessSignature")
    if key is not None and "AccountName" not in parts:
        raise _refused("has AccountKey without AccountName")
    if key is not None and not _is_base64(key):
        raise _refused("has an AccountKey that is not Base64")
    if signature is not None and "sig=" not in signature:
        raise _refused("has a SharedAccessSignature without sig")


def _check_service(parts: dict[str, str], service: str | None) -> None:
    known = _ENDPOINTS if service is None else (f"{service.title()}Endpoint",)
    if "AccountName" not in parts and not any(name in parts for name in known):
        raise _refused(f"has neither AccountName nor {' nor '.join(known)}")


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except binascii.Error:
        return False
    return True


def _refused(reason: str) -> Refused:
    return Refused(f"{reason}; must be {_RULE}")
