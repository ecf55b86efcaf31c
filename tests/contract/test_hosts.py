"""Hosts: in one spelling only, and public unless private ones are allowed."""

import socket
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.hosts import host_in, host_problem, is_public

WIDE = "\N{FULLWIDTH DIGIT ONE}"


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Files.Example", "files.example"),
        ("HTTPS://files.example:443/a?b#c", "files.example"),
        ("http://a_b-c?x=@y", "a_b-c"),
        ("https://[2606:2800::1]:8443/", "2606:2800::1"),
        ("https://[::FFFF:1.2.3.4]", "::ffff:1.2.3.4"),
        ("https://127.1/", "127.1"),
        ("https://files.example./", "files.example."),
    ],
)
def test_the_host_of_a_url(url: str, host: str) -> None:
    assert host_in(url) == host


@pytest.mark.parametrize(
    "url",
    [
        *("", "files.example", "ftp://a", "https:/a", "https://", "https:///a", "https://:443/"),
        *(
            "https://user@a/",
            "https://user:pass@a/",
            "https://a\\@b/",
            "https://a\\b",
            "https://a b",
        ),
        *("https://a:/", "https://a:x/", "https://a:123456/", "https://a:+1/", "https://a:٨/"),
        *("https://ä.example/", f"https://{WIDE}27.0.0.1/", "https://127。0。0。1/", "https://①/"),
        *("https://127%2e0.0.1/", "https://a%00/", "https://a,b/", "https://a;b/", "https://a\n/"),
        *("https://[::1", "https://[::1]a/", "https://[::1%25lo]/", "https://[v1.a]/"),
        *("https://[127.0.0.1]/", "https://[a]/", "https://[]/", "https://[[::1]]/"),
    ],
)
def test_a_host_that_two_parsers_may_read_differently_is_none(url: str) -> None:
    assert host_in(url) is None


@pytest.mark.parametrize(
    "host",
    [
        *("files.example", "a", "inbox7", "a_b.example", "xn--mnchen-3ya.example", "1e100.net"),
        *("127.0.0.1.example", "0x7f.example", "notlocalhost", "localhost.example", "a.0xg"),
        *("8.8.8.8", "93.184.215.14", "2606:2800:21f:cb07::1", "::ffff:8.8.8.8", "x" * 63),
        ".".join(["x" * 49] * 5),
    ],
)
def test_hosts_that_may_be_public(host: str) -> None:
    assert host_problem(host, allow_private=False) is None


@pytest.mark.parametrize(
    "host",
    [
        *("localhost", "LocalHost", "app.localhost", "127.0.0.1", "10.1.2.3", "169.254.169.254"),
        *("::1", "::", "0.0.0.0", "100.64.0.1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002::"),  # noqa: S104
    ],
)
def test_private_hosts_need_permission(host: str) -> None:
    assert host_problem(host, allow_private=False) == "is a private address"
    assert host_problem(host, allow_private=True) is None


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("2130706433", "spelling of the address 127.0.0.1"),
        ("0x7f000001", "spelling of the address 127.0.0.1"),
        ("017700000001", "spelling of the address 127.0.0.1"),
        ("127.1", "spelling of the address 127.0.0.1"),
        ("0X7f.0.0x1", "spelling of the address 127.0.0.1"),
        ("0177.0.0.01", "spelling of the address 127.0.0.1"),
        ("134744072", "spelling of the address 8.8.8.8"),
        ("08.8.8.8", "reads like an address"),
        ("256.1.1.1", "reads like an address"),
        ("4294967296", "reads like an address"),
        ("1.2.3.4.5", "reads like an address"),
        ("files.0x", "reads like an address"),
        ("files.7", "reads like an address"),
        ("1:2", "reads like an address"),
        ("localhost.", "ends with a dot"),
        ("127.0.0.1.", "ends with a dot"),
        ("files.example.", "ends with a dot"),
        (".", "ends with a dot"),
        ("", "is no name"),
        (".example", "is no name"),
        ("a..example", "is no name"),
        ("x" * 64, "is no name"),
        (".".join(["x" * 50] * 5), "is no name"),
        (f"{WIDE}27.0.0.1", "is no name|reads like"),
        ("127。0。0。1", "is no name|reads like"),
    ],
)
@pytest.mark.parametrize("allow_private", [False, True])
def test_a_misspelt_host_is_refused_whatever_is_allowed(
    host: str, problem: str, allow_private: bool
) -> None:
    found = host_problem(host, allow_private=allow_private)
    assert found is not None
    assert any(part in found for part in problem.split("|"))


NUMBERS = st.tuples(
    st.sampled_from(["{number}", "0{zeros}{number:o}", "0x{zeros}{number:x}", "0X{number:X}"]),
    st.text("0", max_size=20),
)


@st.composite
def spellings(draw: st.DrawFn) -> tuple[IPv4Address, str]:
    """An address in any of the forms of inet_aton: one to four numbers, each in any base."""
    address = draw(st.ip_addresses(v=4) | st.just("127.0.0.1").map(IPv4Address))
    assert isinstance(address, IPv4Address)
    parts = draw(st.integers(1, 4))
    leading = list(address.packed[: parts - 1])
    rest = int.from_bytes(address.packed[parts - 1 :], "big")
    numbers = [draw(NUMBERS) for _ in range(parts)]
    written = [
        form.format(number=number, zeros=zeros)
        for number, (form, zeros) in zip([*leading, rest], numbers, strict=True)
    ]
    return address, ".".join(written)


@given(spellings())
def test_an_address_in_any_spelling_is_judged_as_in_its_own(
    spelling: tuple[IPv4Address, str],
) -> None:
    address, host = spelling
    found = host_problem(host, allow_private=False)
    if host != str(address):
        assert found is not None
        assert f"spelling of the address {address};" in found
    else:
        assert (found is None) is is_public(host)


@given(st.text("0123456789abcdefxX.", max_size=20))
def test_what_a_resolver_reads_as_an_address_is_refused_or_a_public_address(host: str) -> None:
    try:
        meant = socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        return
    if host_problem(host, allow_private=False) is None:
        assert host == meant
        assert is_public(meant)


@pytest.mark.parametrize(
    "address",
    [
        *("93.184.215.14", "8.8.8.8", "2606:2800:21f:cb07::1", "::ffff:8.8.8.8"),
        "64:ff9b::808:808",
    ],
)
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.1"),
        *("100.64.0.1", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("0.0.0.0", "192.0.0.192", "192.0.0.9", "192.88.99.1", "168.63.129.16", "3fff::1"),  # noqa: S104
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::7f00:1"),
        *("::127.0.0.1", "::8.8.8.8", "::ffff:0:127.0.0.1", "fd00:ec2::254", "2606:2800::1%eth0"),
        *("2002:7f00:1::", "2002:808:808::", "2001:0:53aa::1", "hooks.example", "127.1", ""),
    ],
)
def test_other_addresses(address: str) -> None:
    assert not is_public(address)
