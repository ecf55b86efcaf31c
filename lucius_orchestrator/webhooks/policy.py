"""Which addresses may be told about jobs.

The control plane stands where others cannot reach, so an address that a client names is looked at
twice: its text when the job is submitted and again before each try, and what its name resolves to
when a connection is made.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.refs import check_no_credentials, is_private_address

# So narrow that no two parsers can read two different hosts in one address.
_HTTPS = re.compile(
    r"https://(?P<host>[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(?P<rest>[/?#].*)?"
)
_UNPRINTABLE = re.compile(r"[\s\\\x00-\x1f\x7f-\x9f]")
_USER = re.compile(r"https://[^/?#]*@")
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_UNICAST = ipaddress.IPv6Network("2000::/3")


@dataclass(frozen=True, slots=True)
class WebhookPolicy:
    """`hosts` are those that may be told; one that begins with a dot allows every host below that
    domain. With `allow_private` they may also lie in private networks or on this machine."""

    hosts: frozenset[str]
    allow_private: bool = False

    def check(self, urls: Sequence[str]) -> None:
        """Refuse a request's `callback_urls` (REF_FORBIDDEN), naming each that is not allowed."""
        problems = [
            Problem(f"/callback_urls/{position}", problem)
            for position, url in enumerate(urls)
            if (problem := self.problem(url)) is not None
        ]
        if problems:
            raise ContractError(
                ErrorCode.REF_FORBIDDEN, "an address for webhooks is against policy", problems
            )

    def problem(self, url: str) -> str | None:
        """What is wrong with an address, without its path and query, or None."""
        if not url.startswith("https://"):
            return "is not an https address"
        if _UNPRINTABLE.search(url):
            return "holds white space, backslashes or control characters; percent-encode them"
        if _USER.match(url) or _holds_a_credential(url):
            return "carries a credential; webhooks are signed instead"
        parts = _HTTPS.fullmatch(url)
        if parts is None:
            return "names no host that is written in letters, digits, dots and dashes"
        return self._problem_of_host(parts["host"].strip("[]").lower())

    def allows_address(self, address: str) -> bool:
        """Whether a connection may go to this IP address."""
        return self.allow_private or is_public(address)

    def _problem_of_host(self, host: str) -> str | None:
        if not self._lists(host):
            return f"its host {host!r} is not on the list of those that may be told"
        if not self.allow_private and _is_private(host):
            return f"its host {host!r} is a private address"
        return None

    def _lists(self, host: str) -> bool:
        allowed = {entry.lower() for entry in self.hosts}
        return host in allowed or any(
            entry.startswith(".") and host.endswith(entry) for entry in allowed
        )


def is_public(address: str) -> bool:
    """Whether an IP address is one of the open internet. One that stands for an IPv4 address is
    judged by that; tunnels, whose other end nobody knows, are not public."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = _inner(found)
        if inner is None:
            tunnels = found.sixtofour or found.teredo
            return found.is_global and found in _UNICAST and not tunnels
        found = inner
    return found.is_global and not found.is_multicast


def _inner(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped


def _is_private(host: str) -> bool:
    """What can be told from the text; a name is resolved later."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return is_private_address(host)
    return not is_public(host)


def _holds_a_credential(url: str) -> bool:
    try:
        check_no_credentials(url, "")
    except ContractError:
        return True
    return False
