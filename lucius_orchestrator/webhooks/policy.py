"""Which addresses may be told about jobs.

The control plane stands where others cannot reach, so an address that a client names is checked
twice, by the policy of `lucius_contract.hosts`: its text when the job is submitted and again before
each try, and what its name resolves to when a connection is made.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.hosts import host_in, host_problem, is_public
from lucius_contract.refs import check_no_credentials

_UNPRINTABLE = re.compile(r"[\s\\\x00-\x1f\x7f-\x9f]")
_USER = re.compile(r"https://[^/?#]*@")


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
        host = host_in(url)
        if host is None:
            return "names no host that is written in letters, digits, dots and dashes"
        return self._problem_of_host(host)

    def allows_address(self, address: str) -> bool:
        """Whether a connection may go to this IP address."""
        return self.allow_private or is_public(address)

    def _problem_of_host(self, host: str) -> str | None:
        if not self._lists(host):
            return f"its host {host!r} is not on the list of those that may be told"
        problem = host_problem(host, allow_private=self.allow_private)
        return None if problem is None else f"its host {host!r} {problem}"

    def _lists(self, host: str) -> bool:
        allowed = {entry.lower() for entry in self.hosts}
        return host in allowed or any(
            entry.startswith(".") and host.endswith(entry) for entry in allowed
        )


def _holds_a_credential(url: str) -> bool:
    try:
        check_no_credentials(url, "")
    except ContractError:
        return True
    return False
