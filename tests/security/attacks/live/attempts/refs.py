"""Refs to what is not the tenant's, and addresses that lead inside."""

from collections.abc import Iterator
from typing import Any

from tests.security.attacks.live.attempts.attempt import Attempt, asked
from tests.security.attacks.live.target import ATTACKER, OWN, VICTIM

_FOREIGN_PLACES = (
    f"az://inbox/{VICTIM}/scan.pdf",
    f"az://outbox/{VICTIM}/scan.json",
    f"az://outbox/{ATTACKER}/../{VICTIM}/scan.json",
    f"az://outbox/{ATTACKER}/%2e%2e/{VICTIM}/scan.json",
    f"az://outbox/{ATTACKER}%2f..%2f{VICTIM}/scan.json",
    f"az://outbox/{ATTACKER}\\..\\{VICTIM}/scan.json",
    f"az://outbox//{VICTIM}/scan.json",
    f"az://outbox/{ATTACKER}2/scan.json",
    f"az://outbox/{ATTACKER}",
    "az://outbox/",
    "az://outbox",
    f"az://other/{ATTACKER}/scan.json",
    f"s3://outbox/{ATTACKER}/scan.json",
    f"file:///lucius/{VICTIM}/job_1/ocr/1/output.txt",
    "file:///etc/passwd",
    "file:/etc/passwd",
    "file://localhost/etc/passwd",
    "FILE:///etc/passwd",
    "http://example.com/a",
    "ftp://example.com/a",
    "gopher://example.com/a",
    "data:text/plain,hello",
    "javascript:alert(1)",
    "jar:file:///a.jar!/b",
    "\\\\example.com\\share",
    "//example.com/a",
    "az:outbox/a",
    "az:///a",
    "az://user:password@outbox/beta/a",
    "az://outbox/beta/a?sig=abc",
    "az://outbox/beta/a\r\nX-Header: 1",
    "",
    "a" * 3000,
)
_PRIVATE_HOSTS = (
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "0",
    "0.0.0.0",  # noqa: S104 - a way to spell this machine
    "localhost",
    "localhost.",
    "a.localhost",
    "127.0.0.1.",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
    "[fe80::1]",
    "[fc00::1]",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.0.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "%31%32%37.0.0.1",
    "\uff11\uff12\uff17.0.0.1",
    "example.com@127.0.0.1",
    "127.0.0.1:8080",
)


def submitted(name: str, **members: Any) -> Attempt:
    return asked(name, "POST", "/v1/orchestrate", json={**OWN, **members})


def refs() -> Iterator[Attempt]:
    for uri in _FOREIGN_PLACES:
        yield submitted(f"read {uri[:80]!r}", input_ref={"uri": uri})
        yield submitted(f"write {uri[:80]!r}", output_ref={"uri": uri})
    yield submitted("write over https", output_ref={"uri": "https://example.com/a"})
    for uri in (
        f"az://workspace/lucius/{ATTACKER}/job_1/",
        f"az://workspace/lucius/{VICTIM}/job_1/",
        "az://workspace/lucius/",
    ):
        yield submitted(f"write into the workspace {uri}", output_ref={"uri": uri})
    signed = "https://a.blob.core.windows.net/c/b?sv=1&sig=secret"
    yield submitted("a signature in the payload", payload={"dpi": 300, "note": signed})


def addresses() -> Iterator[Attempt]:
    for host in _PRIVATE_HOSTS:
        yield submitted(f"read https://{host}", input_ref={"uri": f"https://{host}/a"})
        yield submitted(f"webhook to {host}", callback_urls=[f"https://{host}/hook"])
    for url in ("http://example.com/hook", "https://evil.example/hook", "file:///tmp/hook"):
        yield submitted(f"webhook to {url}", callback_urls=[url])
    yield submitted("too many webhooks", callback_urls=["https://example.com/h"] * 1000)
