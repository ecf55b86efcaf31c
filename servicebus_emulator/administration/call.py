"""One request with all that its handler needs, and the answers that handlers give."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qs

from servicebus_emulator.administration.atom import Entry, Page, entry_document, feed_document
from servicebus_emulator.administration.exchange import ENTRY, FEED, Refusal, Request, Response
from servicebus_emulator.broker import QueueSettings, SubscriptionSettings, TopicSettings

LARGEST_PAGE = 100
_FIXED = ("requires_session", "requires_duplicate_detection")
S = TypeVar("S", QueueSettings, TopicSettings, SubscriptionSettings)


@dataclass(frozen=True, slots=True)
class Call:
    """`names` are those in the path, from the outermost."""

    request: Request
    names: tuple[str, ...]
    now: int

    @property
    def base(self) -> str:
        return f"https://{self.request.headers.get('host', 'localhost')}"

    @property
    def address(self) -> str:
        return self.base + self.request.path

    @property
    def is_update(self) -> bool:
        """Clients say with If-Match that the entity must be there."""
        return "if-match" in self.request.headers

    def page(self) -> Page:
        query = parse_qs(self.request.query)
        skip, top = _number(query, "$skip", 0), _number(query, "$top", LARGEST_PAGE)
        return Page(skip, max(1, min(top, LARGEST_PAGE)))


def _number(query: dict[str, list[str]], name: str, default: int) -> int:
    text = query.get(name, [str(default)])[-1]
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise Refusal(400, f"{name} must be a number of entities")
    return int(text)


def one(entry: Entry, status: int = 200) -> Response:
    return Response(status, entry_document(entry), ENTRY)


def put(entry: Entry, call: Call) -> Response:
    return one(entry, 200 if call.is_update else 201)


def many(title: str, entries: Sequence[Entry], call: Call) -> Response:
    page = call.page()
    shown = entries[page.skip : page.skip + page.top]
    body = feed_document(title, call.address, shown, page, len(entries), call.now)
    return Response(200, body, FEED)


def gone() -> Response:
    return Response(200)


def updated(settings: S, changes: dict[str, Any]) -> S:
    """A description is put as a whole: what it leaves out gets its default, except for what is
    fixed when an entity is made."""
    fixed = {name: getattr(settings, name) for name in _FIXED if hasattr(settings, name)}
    return type(settings)(**(fixed | changes))
