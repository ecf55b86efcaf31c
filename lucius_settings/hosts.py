"""A host, as a variable names it."""

import ipaddress
import re

from lucius_settings.kinds import Kind, must

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    if host.lower() == "localhost":
        return True
    address = address_of(host)
    return address is not None and address.is_loopback


def address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _read_host(text: str) -> str:
    if _NAME.fullmatch(text) or address_of(text):
        return text
    raise must(HOST.rule, text)


HOST = Kind("the name or address of a host, without scheme and port", _read_host)
