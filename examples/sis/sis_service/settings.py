"""The settings of the service's own: an endpoint that writes the answers, or none."""

import ipaddress
import math
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import SecretStr

URL = "SIS_LLM_URL"
MODEL = "SIS_LLM_MODEL"
KEY = "SIS_LLM_KEY"
TIMEOUT = "SIS_LLM_TIMEOUT_SECONDS"
TEMPERATURE = "SIS_LLM_TEMPERATURE"

_DEFAULT_TIMEOUT = 60.0
_LONGEST_TIMEOUT = 600.0
_HIGHEST_TEMPERATURE = 2.0


class SettingsInvalid(Exception):
    """The text names the variables, and says what they must be."""


class EndpointSettings(NamedTuple):
    """An endpoint that speaks as OpenAI's does."""

    url: str
    """Up to and without `/chat/completions`."""
    model: str
    key: SecretStr | None
    timeout_seconds: float
    """For one request."""
    temperature: float | None
    """None leaves it to the endpoint."""

    @property
    def is_local(self) -> bool:
        return is_loopback(urlsplit(self.url).hostname or "")


def read_settings(environ: Mapping[str, str]) -> EndpointSettings | None:
    """None if no endpoint is named. `SettingsInvalid`."""
    values = {name: environ.get(name, "").strip() for name in _VARIABLES}
    if not any(values.values()):
        return None
    problems = [*_missing(values), *_malformed(values)]
    if problems:
        raise SettingsInvalid("; ".join(problems))
    return EndpointSettings(
        values[URL].rstrip("/"),
        values[MODEL],
        SecretStr(values[KEY]) if values[KEY] else None,
        _number(values[TIMEOUT]) or _DEFAULT_TIMEOUT,
        _number(values[TEMPERATURE]),
    )


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_VARIABLES = (URL, MODEL, KEY, TIMEOUT, TEMPERATURE)


def _missing(values: Mapping[str, str]) -> list[str]:
    given = ", ".join(name for name in _VARIABLES if values[name])
    return [f"set {name} too, or unset {given}" for name in (URL, MODEL) if not values[name]]


def _malformed(values: Mapping[str, str]) -> list[str]:
    """The values themselves stay out of it: a key may stand in the wrong variable."""
    rules = (
        (URL, _is_url, "an https address as https://host/v1, or http on loopback"),
        (KEY, _is_header, "printable ASCII without spaces"),
        (TIMEOUT, _is_timeout, f"seconds, more than 0 and at most {_LONGEST_TIMEOUT:.0f}"),
        (TEMPERATURE, _is_temperature, f"a number from 0 to {_HIGHEST_TEMPERATURE:.0f}"),
    )
    return [
        f"{name} must be {rule}"
        for name, holds, rule in rules
        if values[name] and not holds(values[name])
    ]


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    if not parts.hostname or "@" in parts.netloc or parts.query or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def _is_header(text: str) -> bool:
    return text.isascii() and text.isprintable() and " " not in text


def _is_timeout(text: str) -> bool:
    seconds = _number(text)
    return seconds is not None and 0 < seconds <= _LONGEST_TIMEOUT


def _is_temperature(text: str) -> bool:
    number = _number(text)
    return number is not None and 0 <= number <= _HIGHEST_TEMPERATURE


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
