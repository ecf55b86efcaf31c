"""Kinds of values that say which Service Bus namespace to use.

A connection string holds a key: what is refused is never shown again.
"""

from urllib.parse import urlsplit

from lucius_settings.kinds import Kind, Refused, matching
from lucius_settings.secret import Secret

_KNOWN = frozenset(
    {
        "endpoint",
        "sharedaccesskeyname",
        "sharedaccesskey",
        "sharedaccesssignature",
        "entitypath",
        "usedevelopmentemulator",
    }
)
NAMESPACE = matching(
    r"(?=.{3,253}$)[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)+",
    "the full name of a namespace, as bus.servicebus.windows.net, without scheme and port",
)


def _read_connection(text: str) -> Secret:
    parts = _parts(text)
    _check_endpoint(parts.get("endpoint", ""))
    _check_credential(parts)
    if "entitypath" in parts:
        raise _refused("is for one entity (EntityPath), and all lanes are used")
    if parts.get("usedevelopmentemulator", "true") not in ("true", "false"):
        raise _refused("says UseDevelopmentEmulator otherwise than true or false")
    return Secret(text)


CONNECTION = Kind(
    "a connection string of a Service Bus namespace, as Endpoint=sb://...;SharedAccessKeyName=...;"
    "SharedAccessKey=..., without EntityPath",
    _read_connection,
)


def endpoint_of(connection: Secret) -> str:
    """Where the namespace is, without anything secret: `sb://host`, with the port if one is
    named."""
    endpoint = urlsplit(_parts(connection.reveal())["endpoint"])
    return f"sb://{endpoint.netloc}"


def _parts(text: str) -> dict[str, str]:
    """By lower-case name."""
    parts: dict[str, str] = {}
    for part in text.rstrip(";").split(";"):
        name, separator, value = part.partition("=")
        name = name.strip().lower()
        if not separator or name not in _KNOWN:
            raise _refused("has a part that is none of a connection string")
        if name in parts:
            raise _refused("names a part twice")
        parts[name] = value.strip()
    return parts


def _check_endpoint(endpoint: str) -> None:
    try:
        split = urlsplit(endpoint)
        _ = split.port
    except ValueError as error:
        raise _refused("has an Endpoint that is no address") from error
    if split.scheme != "sb" or not split.hostname or "@" in split.netloc or " " in endpoint:
        raise _refused("has no Endpoint like sb://host/")
    if split.path.strip("/") or split.query or split.fragment:
        raise _refused("has an Endpoint with a path")


def _check_credential(parts: dict[str, str]) -> None:
    key, name = parts.get("sharedaccesskey"), parts.get("sharedaccesskeyname")
    signature = parts.get("sharedaccesssignature")
    if not signature and not (key and name):
        raise _refused(
            "has neither SharedAccessKeyName and SharedAccessKey nor SharedAccessSignature"
        )
    if signature and (key or name):
        raise _refused("has both a key and a SharedAccessSignature")


def _refused(reason: str) -> Refused:
    return Refused(f"{reason}; must be {CONNECTION.rule}")
