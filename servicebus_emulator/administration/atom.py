"""Atom entries and feeds around the descriptions of Service Bus.

They are written as text, with the namespaces where the service puts them: some clients look for
names as they are written rather than for what they mean.
"""

from collections.abc import Sequence
from typing import NamedTuple
from xml.etree import ElementTree

from servicebus_emulator.administration.exchange import Refusal
from servicebus_emulator.administration.text import escaped, write_time

ATOM = "http://www.w3.org/2005/Atom"
SERVICE_BUS = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_DECLARATION = '<?xml version="1.0" encoding="utf-8"?>'


class Entry(NamedTuple):
    """`content` is XML already, in the namespace of Service Bus with `i` for instance types."""

    title: str
    address: str
    description: str
    content: str
    published: int
    updated: int


class Page(NamedTuple):
    skip: int
    top: int


def described(body: bytes, description: str) -> ElementTree.Element:
    """The description in the entry that was sent. `Refusal`: there is none."""
    found = parse(body).find(f"{{{ATOM}}}content/{{{SERVICE_BUS}}}{description}")
    if found is None:
        raise Refusal(400, f"the body has no Atom entry with a {description}")
    return found


def parse(body: bytes) -> ElementTree.Element:
    """Documents that declare types or entities are refused unread: they can grow without end."""
    try:
        text = body.decode("utf-8-sig")
        if "<!doctype" in text.lower() or "<!entity" in text.lower():
            raise Refusal(400, "the body declares a document type, which is not allowed")
        return ElementTree.fromstring(text)  # noqa: S314 - no entities, and the size is bounded
    except (UnicodeDecodeError, ElementTree.ParseError) as error:
        raise Refusal(400, "the body is not XML in UTF-8") from error


def entry_document(entry: Entry) -> bytes:
    return (_DECLARATION + _entry(entry, f' xmlns="{ATOM}"')).encode()


def feed_document(
    title: str, address: str, entries: Sequence[Entry], page: Page, total: int, now: int
) -> bytes:
    """Clients take the second link, if there is one, for the next page."""
    links = _link("self", f"{address}?$skip={page.skip}&$top={page.top}")
    if page.skip + page.top < total:
        links += _link("next", f"{address}?%24skip={page.skip + page.top}&%24top={page.top}")
    body = "".join(_entry(entry) for entry in entries)
    head = f'<title type="text">{escaped(title)}</title><id>{escaped(address)}</id>'
    text = f'<feed xmlns="{ATOM}">{head}<updated>{write_time(now)}</updated>{links}{body}</feed>'
    return (_DECLARATION + text).encode()


def _entry(entry: Entry, namespace: str = "") -> str:
    content = (
        f'<{entry.description} xmlns="{SERVICE_BUS}" xmlns:i="{INSTANCE}">{entry.content}'
        f"</{entry.description}>"
    )
    return (
        f"<entry{namespace}><id>{escaped(entry.address)}</id>"
        f'<title type="text">{escaped(entry.title)}</title>'
        f"<published>{write_time(entry.published)}</published>"
        f"<updated>{write_time(entry.updated)}</updated>"
        f"{_link('self', entry.address)}"
        f'<content type="application/xml">{content}</content></entry>'
    )


def _link(relation: str, address: str) -> str:
    return f'<link rel="{relation}" href="{escaped(address)}"/>'
