"""Which addresses a request may name."""

import pytest

from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.webhooks import WebhookPolicy

LISTED = frozenset({"hooks.example", ".below.example", "Mixed.Example", "93.184.215.14", "127.1"})
PRIVATE = frozenset({"localhost", "127.0.0.1", "::1", "10.0.0.7"})
POLICY = WebhookPolicy(LISTED | PRIVATE)


@pytest.mark.parametrize(
    "url",
    [
        "https://hooks.example",
        "https://hooks.example/",
        "https://HOOKS.EXAMPLE:8443/a/b?c=d@e#f",
        "https://hooks.example?code=1",
        "https://hooks.example/ä",
        "https://a.below.example/x",
        "https://a.b.below.example/x",
        "https://mixed.example",
        "https://93.184.215.14/x",
    ],
)
def test_allowed(url: str) -> None:
    POLICY.check([url])


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://hooks.example", "https"),
        ("HTTPS://hooks.example", "https"),
        ("ftp://hooks.example", "https"),
        ("", "https"),
        ("https://", "no host"),
        ("https:///path", "no host"),
        ("https://ä.example", "no host"),
        ("https://hooks.example:port/", "no host"),
        ("https://hooks.example:123456/", "no host"),
        ("https://[::1/", "no host"),
        ("https://evil.example", "not on the list"),
        ("https://below.example", "not on the list"),
        ("https://nothooks.example", "not on the list"),
        ("https://xbelow.example", "not on the list"),
        ("https://hooks.example.", "not on the list"),
        ("https://hooks.example.evil.test", "not on the list"),
        ("https://8.8.8.8", "not on the list"),
        ("https://user@hooks.example", "credential"),
        ("https://user:pass@hooks.example", "credential"),
        ("https://hooks.example@evil.example", "credential"),
        ("https://hooks.example/?sig=abc", "credential"),
        ("https://evil.example\\@hooks.example", "backslash"),
        ("https://hooks.example/a b", "white space"),
        ("https://hooks.example/\n", "white space"),
        ("https://hooks.example/\0", "control"),
        ("https://localhost/x", "private"),
        ("https://127.0.0.1/x", "private"),
        ("https://[::1]/x", "private"),
        ("https://10.0.0.7/x", "private"),
        ("https://127.1/x", "another spelling of the address 127.0.0.1"),
    ],
)
def test_refused(url: str, reason: str) -> None:
    with pytest.raises(ContractError, match=reason) as refused:
        POLICY.check(["https://hooks.example", url])
    assert refused.value.code is ErrorCode.REF_FORBIDDEN
    assert [problem.pointer for problem in refused.value.problems] == ["/callback_urls/1"]


def test_all_problems_are_named_at_once() -> None:
    with pytest.raises(ContractError) as refused:
        POLICY.check(["http://x", "https://hooks.example", "https://evil.example"])
    pointers = [problem.pointer for problem in refused.value.problems]
    assert pointers == ["/callback_urls/0", "/callback_urls/2"]


def test_private_addresses_can_be_allowed() -> None:
    WebhookPolicy(PRIVATE, allow_private=True).check([f"https://{host}" for host in ("localhost",)])
    WebhookPolicy(PRIVATE, allow_private=True).check(["https://[::1]:8443", "https://10.0.0.7"])


def test_without_hosts_nobody_may_be_told() -> None:
    nobody = WebhookPolicy(frozenset())
    nobody.check([])
    with pytest.raises(ContractError, match="not on the list"):
        nobody.check(["https://hooks.example"])
