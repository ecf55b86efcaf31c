"""Requests that a web page makes. A browser on this machine reaches its loopback ports for every
page that it shows, also under a name of the page's own that leads here."""

from collections.abc import Mapping
from ipaddress import ip_address
from urllib.parse import urlsplit


def is_of_web_page(headers: Mapping[str, str]) -> bool:
    """Whether the headers, whose names are in lower case, are of a page or for a name that is not
    this machine's own. Programs send no Origin."""
    return "origin" in headers or not _is_own(headers.get("host", "localhost"))


def _is_own(host: str) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
