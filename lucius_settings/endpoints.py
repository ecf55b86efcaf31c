"""The address of a service, as settings name it."""

from urllib.parse import SplitResult, urlsplit

from lucius_settings.hosts import is_loopback
from lucius_settings.kinds import Refused


def read_endpoint(address: str, rule: str) -> SplitResult:
    """The parts of an https address, or of an http address of this machine; `Refused` otherwise.
    The address is not shown again: people put credentials into it."""
    try:
        split = urlsplit(address)
        _ = split.port
    except ValueError as error:
        raise Refused(f"has an endpoint that is no address; must be {rule}") from error
    if not split.hostname or "@" in split.netloc or " " in address:
        raise Refused(f"has an endpoint that is no address; must be {rule}")
    if split.query or split.fragment:
        raise Refused(f"has an endpoint with a query; must be {rule}")
    if split.scheme != "https" and not (split.scheme == "http" and is_loopback(split.hostname)):
        raise Refused(f"does not use https, and is not of this machine; must be {rule}")
    return split
