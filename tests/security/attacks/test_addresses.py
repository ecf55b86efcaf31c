"""Requests that would lead the control plane or a service into a private network."""

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import httpcore
import httpx
import pytest
import pytest_asyncio

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.ports.webhooks import Webhook
from lucius_orchestrator.webhooks import WebhookPolicy, WebhookSender
from lucius_orchestrator.webhooks.sender import WebhookFailed
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.remote import HttpReader
from tests.bootstrap.planes import OCR, client, plane
from tests.ledger.backends import Clock
from tests.sdk.workspace_io.stage import raises
from tests.webhooks.receiver import HOST, KEY, LOOPBACK, Certificate, Names, Receiver
from tests.webhooks.receiver import new_certificate as certificate_of

PUBLIC = "93.184.215.14"
SPELLINGS = {
    "decimal": "2130706433",
    "hexadecimal": "0x7f000001",
    "octal": "017700000001",
    "two parts": "127.1",
    "three parts": "127.0.1",
    "mixed bases": "0x7f.0.0.01",
    "octal parts": "0177.0.0.1",
    "leading zeros": "127.0.0.001",
    "public, decimal": "134744072",
    "too many parts": "1.2.3.4.5",
    "a part too large": "256.0.0.1",
    "a bare base": "0x",
    "trailing dot": "127.0.0.1.",
    "trailing dot of a name": "metadata.google.internal.",
    "localhost": "localhost",
    "localhost in capitals": "LOCALHOST",
    "localhost with a dot": "localhost.",
    "below localhost": "app.localhost",
    "loopback": "127.0.0.1",
    "other loopback": "127.9.9.9",
    "unspecified": "0.0.0.0",  # noqa: S104
    "this network": "0.1.2.3",
    "private 10": "10.0.0.1",
    "private 172": "172.31.255.255",
    "private 192": "192.168.0.1",
    "metadata": "169.254.169.254",
    "metadata, decimal": "2852039166",
    "Azure platform": "168.63.129.16",
    "Oracle metadata": "192.0.0.192",
    "carrier": "100.64.0.1",
    "benchmarks": "198.18.0.1",
    "multicast": "224.0.0.1",
    "reserved": "240.0.0.1",
    "broadcast": "255.255.255.255",
    "IPv6 loopback": "[::1]",
    "IPv6 loopback, long": "[0:0:0:0:0:0:0:1]",
    "IPv6 unspecified": "[::]",
    "IPv6 link-local": "[fe80::1]",
    "IPv6 site-local": "[fec0::1]",
    "IPv6 private": "[fd00:ec2::254]",
    "IPv6 multicast": "[ff02::1]",
    "IPv6 documentation": "[2001:db8::1]",
    "mapped": "[::ffff:127.0.0.1]",
    "mapped, hexadecimal": "[::ffff:7f00:1]",
    "compatible": "[::127.0.0.1]",
    "translated": "[::ffff:0:7f00:1]",
    "NAT64": "[64:ff9b::7f00:1]",
    "NAT64, dotted": "[64:ff9b::169.254.169.254]",
    "NAT64, local prefix": "[64:ff9b:1::7f00:1]",
    "6to4": "[2002:7f00:1::]",
    "6to4 of a public one": "[2002:808:808::1]",
    "Teredo": "[2001:0:53aa:64c::1]",
    "zone": "[fe80::1%25eth0]",
    "zone, bare": "[fe80::1%eth0]",
    "zone of a public one": "[2606:2800::1%25eth0]",
    "IPv4 in brackets": "[127.0.0.1]",
    "future address": "[v1.7f000001]",
    "text after brackets": "[2606:2800::1].127.0.0.1",
    "full-width digits": "\N{FULLWIDTH DIGIT ONE}27.0.0.1",
    "circled digits": "\N{CIRCLED DIGIT ONE}27.0.0.1",
    "ideographic dots": "127\N{IDEOGRAPHIC FULL STOP}0.0.1",
    "full-width letters": "\N{FULLWIDTH LATIN SMALL LETTER L}ocalhost",
    "soft hyphen": "local\N{SOFT HYPHEN}host",
    "percent-encoded": "127%2e0%2e0%2e1",
    "percent-encoded letters": "%6cocalhost",
    "a user before it": f"{PUBLIC}@127.0.0.1",
    "a backslash before it": f"{PUBLIC}\\@127.0.0.1",
    "a blank": "127.0.0.1 ",
    "a tab": "127.0.0\t.1",
    "a null": "127.0.0.1\0.example.com",
    "no host": "",
}


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for scheme in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{scheme}_proxy", raising=False)
        monkeypatch.delenv(f"{scheme.upper()}_PROXY", raising=False)


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def api(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[httpx.AsyncClient]:
    """Of a control plane whose operator has listed every host that can be listed."""
    listed = {host.lower() for host in SPELLINGS.values() if host.replace(".", "").isalnum()}
    listed = {host for host in listed if host.isascii()} | {"hooks.example", PUBLIC, "::1", "::"}
    settings = {
        "LUCIUS_WEBHOOK_HOSTS": ",".join(sorted(listed)),
        "LUCIUS_WEBHOOK_KEYS": "k" * 32,
    }
    folder: Path = tmp_path_factory.mktemp("plane")
    async with plane(folder, **settings) as made, client(made) as api:
        yield api


async def submitted(api: httpx.AsyncClient, **members: Any) -> tuple[int, str, str]:
    answer = await api.post("/v1/orchestrate", json=OCR | members)
    body = answer.json()
    return answer.status_code, body.get("code", ""), str(body)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("host", SPELLINGS.values(), ids=list(SPELLINGS))
@pytest.mark.parametrize("form", ["https://{}/a.pdf", "https://{}:8443/a.pdf", "HTTPS://{}"])
async def test_a_ref_to_a_private_or_misspelt_host_is_refused(
    api: httpx.AsyncClient, host: str, form: str
) -> None:
    status, code, _ = await submitted(api, input_ref={"uri": form.format(host)})
    assert (status, code) in {(403, "REF_FORBIDDEN"), (422, "REF_INVALID")}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("host", SPELLINGS.values(), ids=list(SPELLINGS))
async def test_a_webhook_to_a_private_or_misspelt_host_is_refused_even_if_it_is_listed(
    api: httpx.AsyncClient, host: str
) -> None:
    status, code, _ = await submitted(api, callback_urls=[f"https://{host}/done"])
    assert (status, code) == (403, "REF_FORBIDDEN")


@pytest.mark.asyncio(loop_scope="module")
async def test_public_hosts_are_accepted(api: httpx.AsyncClient) -> None:
    for host in ("files.example", PUBLIC, "[2606:2800:21f:cb07::1]:8443", "[64:ff9b::808:808]"):
        assert (await submitted(api, input_ref={"uri": f"https://{host}/{host}"}))[0] == 202
    for host in ("hooks.example", PUBLIC):
        assert (await submitted(api, callback_urls=[f"https://{host}/{host}"]))[0] == 202


@pytest.mark.asyncio(loop_scope="module")
async def test_a_refusal_names_the_address_that_a_spelling_means(api: httpx.AsyncClient) -> None:
    _, _, said = await submitted(api, input_ref={"uri": "https://2852039166/latest"})
    assert "another spelling of the address 169.254.169.254" in said


class Network(httpcore.NetworkBackend):
    """Connects to nothing, and remembers to what it was to connect."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def connect_tcp(self, host: str, *_: Any, **__: Any) -> httpcore.NetworkStream:
        self.asked.append(host)
        raise httpcore.ConnectError("refused")


class Resolver:
    """Gives the next of its answers each time it is asked."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers: Iterator[Sequence[str]] = iter(answers)
        self.asked: list[str] = []

    def __call__(self, host: str, _: int) -> Sequence[str]:
        self.asked.append(host)
        return next(self._answers)


RESOLVED = [
    *("127.0.0.1", "10.0.0.1", "169.254.169.254", "168.63.129.16", "100.64.0.1", "0.0.0.0"),  # noqa: S104
    *("::1", "::ffff:10.0.0.1", "::10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::", "2001::1"),
    *("fe80::1%eth0", "fd00::1", "ff02::1", "224.0.0.1"),
]


@pytest.mark.parametrize("address", RESOLVED)
def test_a_service_connects_to_no_name_that_resolves_to_a_private_address(address: str) -> None:
    network = Network()
    reader = HttpReader(resolve=Resolver([address]), network=network)
    with raises(ErrorCode.INPUT_FORBIDDEN, "leads to a private address"):
        reader.open_read("https://files.example/a.pdf")
    assert network.asked == []


@pytest.mark.parametrize("host", SPELLINGS.values(), ids=list(SPELLINGS))
def test_a_service_judges_the_spelling_itself(host: str) -> None:
    """Refs also come from the steps before, which no plane has looked at."""
    network = Network()
    reader = HttpReader(resolve=Resolver([PUBLIC]), network=network)
    with pytest.raises(NonRetryableError) as refusal:
        reader.open_read(f"https://{host}/a.pdf")
    assert refusal.value.code in (ErrorCode.INPUT_INVALID, ErrorCode.INPUT_FORBIDDEN)
    assert network.asked == []


def test_of_several_addresses_a_service_uses_the_public_ones() -> None:
    network, resolver = Network(), Resolver(["10.0.0.1", PUBLIC, "::1"])
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        HttpReader(resolve=resolver, network=network).open_read("https://files.example/a.pdf")
    assert network.asked == [PUBLIC]


def test_a_name_that_is_bound_anew_after_the_check_leads_a_service_nowhere_else() -> None:
    network, resolver = Network(), Resolver([PUBLIC], ["127.0.0.1"])
    reader = HttpReader(resolve=resolver, network=network)
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        reader.open_read("https://files.example/a.pdf")
    assert (network.asked, resolver.asked) == ([PUBLIC], ["files.example"])
    with raises(ErrorCode.INPUT_FORBIDDEN, "private"):
        reader.open_read("https://files.example/a.pdf")
    assert network.asked == [PUBLIC]


@pytest.mark.parametrize(
    "uri", ["http://127.0.0.1:8081/metrics", "http://localhost/", "http://[::1]/"]
)
def test_a_service_reads_nothing_of_its_own_machine(uri: str) -> None:
    """Where the health server is, and the token endpoint of a managed identity."""
    network = Network()
    with raises(ErrorCode.INPUT_FORBIDDEN, "is a private address"):
        HttpReader(network=network).open_read(uri)
    assert network.asked == []


@pytest.mark.parametrize("name", ["HTTPS_PROXY", "ALL_PROXY"])
def test_no_proxy_resolves_a_name_again(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://10.0.0.1:3128")
    network, resolver = Network(), Resolver([PUBLIC])
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        HttpReader(resolve=resolver, network=network).open_read("https://a.example/")
    assert (resolver.asked, network.asked) == (["a.example"], [PUBLIC])


class OneIsPublic(WebhookPolicy):
    """127.0.0.1 counts as public, so that a receiver can be there; 127.0.0.2 does not."""

    def allows_address(self, address: str) -> bool:
        return address == LOOPBACK


class Rebinding(Names):
    async def resolve(self, *args: Any, **named: Any) -> Any:
        found = await super().resolve(*args, **named)
        self.addresses = ("127.0.0.2",)
        return found


async def test_a_name_that_is_bound_anew_leads_no_webhook_elsewhere(
    tmp_path: Path, without_proxies: None
) -> None:
    certificate: Certificate = certificate_of(tmp_path)
    names, clock = Rebinding(LOOPBACK), Clock()
    policy = OneIsPublic(frozenset({HOST}))
    async with Receiver(clock).running(certificate) as receiver:
        webhook = Webhook("job_1.1.0", "acme", receiver.url(), b'{"event_id": "job_1.1.0"}')
        for _ in range(2):
            async with WebhookSender(
                lambda _: [KEY], policy, clock, ca_file=certificate.file, resolver=names
            ) as sender:
                if not receiver.tries:
                    await sender.send(webhook)
                else:
                    with pytest.raises(WebhookFailed, match="private addresses only"):
                        await sender.send(webhook)
        assert len(receiver.tries) == 1
    assert names.asked == [HOST, HOST]


async def test_webhooks_ask_for_raw_answers_and_use_no_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    certificate: Certificate = certificate_of(tmp_path)
    clock = Clock()
    async with (
        Receiver(clock).running(certificate) as receiver,
        WebhookSender(
            lambda _: [KEY],
            OneIsPublic(frozenset({HOST})),
            clock,
            ca_file=certificate.file,
            resolver=Names(LOOPBACK),
        ) as sender,
    ):
        await sender.send(
            Webhook("job_1.1.0", "acme", receiver.url(), b'{"event_id": "job_1.1.0"}')
        )
        assert [tried["Accept-Encoding"] for tried in receiver.tries] == ["identity"]
