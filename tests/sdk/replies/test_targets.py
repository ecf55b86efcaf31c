"""Callback addresses, and the proxies on the way."""

import pytest

from lucius_sdk.replies.targets import Route, read_target

PROXY = "http://proxy.example:3128"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for scheme in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{scheme}_proxy", raising=False)
        monkeypatch.delenv(f"{scheme.upper()}_PROXY", raising=False)
    return monkeypatch


def test_an_address_is_shown_without_path_and_query() -> None:
    target = read_target("https://api.example:8443/v1/callbacks/ack?sig=secret")
    assert target.origin == "https://api.example:8443"
    assert target.route == Route(is_secure=True, host="api.example", port=8443)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ftp://x/secret",
        "/v1/secret",
        "http:///secret",
        "http://user:secret@x/",
        "http://x:secret/",
        "http://[secret/",
        "http://x/secret\x00",
        "file:///secret",
    ],
)
def test_an_address_that_leads_nowhere_is_refused_and_not_repeated(address: str) -> None:
    with pytest.raises(ValueError, match="the callback address") as caught:
        read_target(address)
    assert "secret" not in str(caught.value)


def test_proxies_are_those_of_the_environment(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("https_proxy", PROXY)
    environment.setenv("no_proxy", "inside.example")
    assert read_target("https://api.example/").route.proxy == PROXY
    assert read_target("https://inside.example/").route.proxy is None
    assert read_target("http://api.example/").route.proxy is None


def test_one_proxy_may_be_for_all(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("all_proxy", PROXY)
    assert read_target("http://api.example/").route.proxy == PROXY


@pytest.mark.parametrize("host", ["localhost", "api.localhost", "127.0.0.1", "127.9.9.9", "[::1]"])
def test_no_proxy_is_on_the_way_to_this_machine(host: str, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("http_proxy", PROXY)
    assert read_target(f"http://{host}:80/").route.proxy is None
