"""Callback addresses, as a directive writes them: read once, used often."""

import ipaddress
import re
from typing import NamedTuple
from urllib.request import getproxies, proxy_bypass

import httpx

_PORTS = {"http": 80, "https": 443}
_HOST = re.compile(rb"[A-Za-z0-9._:-]+")


class Route(NamedTuple):
    """Targets with the same route share their connections: those to their host, or to a proxy."""

    is_secure: bool
    host: str
    port: int
    proxy: str | None = None


class Target(NamedTuple):
    """`origin` is as much of the address as may be shown."""

    url: httpx.URL
    origin: str
    route: Route


def read_target(address: str) -> Target:
    """`ValueError`, which does not repeat the address, if nobody could be reached by it. Proxies
    are those of the environment, never on the way to this machine itself."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        raise ValueError("the callback address cannot be read") from None
    if url.scheme not in _PORTS or not _HOST.fullmatch(url.raw_host):
        raise ValueError("the callback address is not one of http or https")
    if url.userinfo:
        raise ValueError("the callback address holds a user; the directive's token is for that")
    origin = f"{url.scheme}://{url.netloc.decode('ascii')}"
    host, port = url.raw_host.decode("ascii"), url.port or _PORTS[url.scheme]
    return Target(
        url, origin, Route(url.scheme == "https", host, port, proxy_for(url.scheme, url.host, port))
    )


def proxy_for(scheme: str, host: str, port: int) -> str | None:
    """Return the proxy that the environment names; None on the way to this machine itself."""
    if _is_loopback(host) or proxy_bypass(f"{host}:{port}"):
        return None
    proxies = getproxies()
    return proxies.get(scheme) or proxies.get("all")


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
