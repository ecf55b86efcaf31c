"""Kinds of values that say which Azure App Configuration to use, and what of it.

A connection string holds a key: what is refused is never shown again.
"""

import base64
import binascii

from lucius_settings.endpoints import read_endpoint
from lucius_settings.kinds import Kind, Refused, matching
from lucius_settings.secret import Secret

_PARTS = {"endpoint": "Endpoint", "id": "Id", "secret": "Secret"}
_USUAL_PORTS = {"http": 80, "https": 443}
_CONNECTION_RULE = (
    "a connection string of App Configuration: Endpoint=https://...;Id=...;Secret=..."
)
_ENDPOINT_RULE = "the https address of an App Configuration, as https://name.azconfig.io"


def _read_connection(text: str) -> Secret:
    """In the form that the client reads: these three parts, and no slash after the address."""
    parts = _parts(text)
    parts["Endpoint"] = _origin(parts["Endpoint"], _CONNECTION_RULE)
    try:
        base64.b64decode(parts["Secret"], validate=True)
    except binascii.Error as error:
        raise _refused("has a Secret that is not Base64") from error
    return Secret(";".join(f"{name}={parts[name]}" for name in _PARTS.values()))


def _read_endpoint(text: str) -> str:
    if not text.lower().startswith("https:"):
        raise Refused(f"does not use https; must be {_ENDPOINT_RULE}")
    return _origin(text, _ENDPOINT_RULE)


CONNECTION = Kind(_CONNECTION_RULE, _read_connection)
ENDPOINT = Kind(_ENDPOINT_RULE, _read_endpoint)
# None of these may hold what filters give a meaning to: `*`, `,` and the backslash.
LABEL = matching(
    r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}",
    "1 to 128 letters, digits, dots, underscores, colons, slashes or hyphens, a letter or digit"
    " first",
)
KEY = matching(
    r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}",
    "1 to 256 letters, digits, dots, underscores, colons, slashes or hyphens, a letter or digit"
    " first",
)
PREFIX = matching(
    r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,126}[.:/]",
    "2 to 128 letters, digits, dots, underscores, colons, slashes or hyphens, a letter or digit"
    " first and a dot, colon or slash last",
)


def endpoint_of(connection: Secret) -> str:
    """Where it is, without anything secret."""
    return _parts(connection.reveal())["Endpoint"]


def _parts(text: str) -> dict[str, str]:
    """All three, by the names that the client knows."""
    parts: dict[str, str] = {}
    for part in text.rstrip(";").split(";"):
        name, separator, value = part.partition("=")
        known = _PARTS.get(name.strip().lower())
        if not separator or known is None:
            raise _refused("has a part that is none of a connection string")
        if known in parts:
            raise _refused("names a part twice")
        parts[known] = value.strip()
    if not all(parts.get(name) for name in _PARTS.values()):
        raise _refused("lacks one of Endpoint, Id and Secret")
    return parts


def _origin(address: str, rule: str) -> str:
    """Spelled as the header `Host` will be: the client signs what stands here."""
    split = read_endpoint(address, rule)
    if split.path.strip("/"):
        raise Refused(f"has an endpoint with a path; must be {rule}")
    host = split.hostname or ""
    host = f"[{host}]" if ":" in host else host
    is_usual = split.port in (None, _USUAL_PORTS[split.scheme])
    return f"{split.scheme}://{host}" + ("" if is_usual else f":{split.port}")


def _refused(reason: str) -> Refused:
    return Refused(f"{reason}; must be {_CONNECTION_RULE}")
