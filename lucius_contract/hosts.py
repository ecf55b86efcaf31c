"""Which hosts a url of a request may name, and which addresses a connection may go to.

One policy for `https` refs and webhooks, in the control plane and in services: `host_problem`
judges the spelling when a job is submitted, `is_public` the resolved address when a connection is
made.
"""

import ipaddress
import re
import socket

# So narrow that no two parsers can read two different hosts in one url.
_URL = re.compile(
    r"(?i:https?)://(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*\])"
    r"(:[0-9]{1,5})?([/?#].*)?"
)
_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*")
_ENDS_IN_A_NUMBER = re.compile(r"(\A|\.)([0-9]+|0[xX][0-9A-Fa-f]*)\Z")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")
# `is_global` differs between releases of Python; these are refused by each of them.
_NOT_PUBLIC = (
    ipaddress.IPv4Network("192.0.0.0/24"),  # protocol assignments, a metadata server among them
    ipaddress.IPv4Network("192.88.99.0/24"),  # 6to4 relays
    ipaddress.IPv4Network("168.63.129.16/32"),  # Azure's platform server, seen from its machines
    ipaddress.IPv6Network("3fff::/20"),  # documentation
)


def host_in(url: str) -> str | None:
    """Return the host of an http or https url in lower case, an IPv6 address without its brackets;
    None where two parsers might disagree about it, and where a user stands before it."""
    parts = _URL.fullmatch(url)
    return None if parts is None else parts["host"].strip("[]").lower()


def host_problem(host: str, *, allow_private: bool) -> str | None:
    """Return what is wrong with the spelling of a host, or None.

    Addresses have their canonical form only: resolvers read `2130706433`, `127.1` and `0x7f.1` as
    127.0.0.1. What a name resolves to is judged by `is_public` when a connection is made.
    """
    if host.endswith("."):
        return "ends with a dot; leave it out"
    if ":" in host or _ENDS_IN_A_NUMBER.search(host):
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return _misspelt(host)
        is_private = not is_public(host)
    elif _NAME.fullmatch(host):
        is_private = f".{host.lower()}".endswith(".localhost")
    else:
        return "is no name in letters, digits, dashes and dots; write others in their xn-- form"
    return "is a private address" if is_private and not allow_private else None


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the open internet. One that stands for an IPv4 address
    is judged by that; tunnels, whose other end is unknown, are not public."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = _inner(found)
        if inner is None:
            tunnels = found.sixtofour or found.teredo
            return found in _UNICAST and not tunnels and found.scope_id is None and _global(found)
        found = inner
    return not found.is_multicast and _global(found)


def _global(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return address.is_global and not any(address in network for network in _NOT_PUBLIC)


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped


def _misspelt(host: str) -> str:
    try:
        meant = socket.inet_ntoa(socket.inet_aton(host))
    except (OSError, ValueError):
        return "reads like an address and is none"
    return f"is another spelling of the address {meant}; write four decimal numbers"
