"""Kinds of values that say which Azure storage account to use.

A connection string holds a key: what is refused is never shown again.
"""

from urllib.parse import urlsplit

from lucius_settings.hosts import is_loopback
from lucius_settings.kinds import Kind, Refused
from lucius_settings.secret import Secret

_ENDPOINTS = frozenset({"blobendpoint", "tableendpoint", "queueendpoint", "fileendpoint"})
_SECONDARY = frozenset(f"{name[:-8]}secondaryendpoint" for name in _ENDPOINTS)
_KNOWN = frozenset(
    {
        "defaultendpointsprotocol",
        "accountname",
        "accountkey",
        "sharedaccesssignature",
        "endpointsuffix",
        "usedevelopmentstorage",
        "developmentstorageproxyuri",
        *_ENDPOINTS,
        *_SECONDARY,
    }
)


def _read_connection(text: str) -> Secret:
    parts = _parts(text)
    if parts.get("usedevelopmentstorage", "").lower() == "true":
        return Secret(text)
    for name in _ENDPOINTS & parts.keys():
        _check_address(parts[name], STORAGE_CONNECTION)
    _check_protocol(parts)
    _check_credential(parts)
    return Secret(text)


STORAGE_CONNECTION = Kind(
    "a connection string of a storage account, as DefaultEndpointsProtocol=https;AccountName=...;"
    "AccountKey=..., or with its endpoints and a SharedAccessSignature",
    _read_connection,
)


def storage_endpoint(service: str) -> Kind:
    """The address of one of an account's services; who may use it is a matter of identity."""
    rule = f"the https address of the account's {service} service, as https://name.{service}.core.windows.net"

    def read(text: str) -> str:
        _check_address(text, kind)
        return text.rstrip("/")

    kind = Kind(rule, read)
    return kind


def _parts(text: str) -> dict[str, str]:
    """By lower-case name."""
    parts: dict[str, str] = {}
    for part in text.strip().rstrip(";").split(";"):
        name, separator, value = part.partition("=")
        name = name.strip().lower()
        if not separator or name not in _KNOWN:
            raise _refused("has a part that is none of a connection string")
        if name in parts:
            raise _refused("names a part twice")
        parts[name] = value.strip()
    return parts


def _check_address(address: str, kind: Kind) -> None:
    try:
        split = urlsplit(address)
        _ = split.port
    except ValueError as error:
        raise Refused(f"has an endpoint that is no address; must be {kind.rule}") from error
    if not split.hostname or "@" in split.netloc or " " in address:
        raise Refused(f"has an endpoint that is no address; must be {kind.rule}")
    if split.query or split.fragment:
        raise Refused(f"has an endpoint with a query; must be {kind.rule}")
    if split.scheme != "https" and not (split.scheme == "http" and is_loopback(split.hostname)):
        raise Refused(f"does not use https, and is not of this machine; must be {kind.rule}")


def _check_protocol(parts: dict[str, str]) -> None:
    if parts.get("defaultendpointsprotocol", "https") != "https" and not _ENDPOINTS & parts.keys():
        raise _refused("does not use https")


def _check_credential(parts: dict[str, str]) -> None:
    key, signature = parts.get("accountkey"), parts.get("sharedaccesssignature")
    if bool(key) == bool(signature):
        raise _refused("has neither or both of AccountKey and SharedAccessSignature")
    if not parts.get("accountname") and not _ENDPOINTS & parts.keys():
        raise _refused("names neither the account nor an endpoint")


def _refused(reason: str) -> Refused:
    return Refused(f"{reason}; must be {STORAGE_CONNECTION.rule}")
