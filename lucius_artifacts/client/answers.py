"""What the server answers, as far as the client itself looks at it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from lucius_artifacts.client.errors import Unavailable

T = TypeVar("T")
JsonObject = dict[str, Any]

COMMITTED = "committed"
ABORTED = "aborted"
INITIATED = "initiated"
PENDING = "pending_commit"


@dataclass(frozen=True, slots=True)
class Session:
    """An upload. `received` are the numbers of parts that have arrived, from and to."""

    upload_id: str
    state: str
    digest: str
    length: int
    part_size: int
    part_count: int
    challenge: str = field(repr=False)
    reason: str | None = None
    uri: str | None = None
    received: tuple[tuple[int, int], ...] = ()

    @property
    def missing(self) -> list[int]:
        there = {n for first, last in self.received for n in range(first, last + 1)}
        return [number for number in range(1, self.part_count + 1) if number not in there]

    def offset_of(self, number: int) -> int:
        return (number - 1) * self.part_size

    def size_of(self, number: int) -> int:
        return min(self.part_size, self.length - self.offset_of(number))


@dataclass(frozen=True, slots=True)
class SignedPart:
    """How to bring a part. The url is a secret."""

    number: int
    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True)
class Content:
    """What a uri names, and how to read it. The url is a secret."""

    uri: str
    digest: str
    length: int
    media_type: str
    file_name: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


def session_of(body: JsonObject) -> Session:
    return _read(
        lambda: Session(
            str(body["upload_id"]),
            str(body["state"]),
            str(body["digest"]),
            int(body["length"]),
            int(body["part_size"]),
            int(body["part_count"]),
            str(body["challenge"]),
            body.get("reason"),
            body.get("uri"),
            tuple((int(first), int(last)) for first, last in body.get("received") or ()),
        )
    )


def parts_of(body: JsonObject) -> list[SignedPart]:
    return _read(lambda: [_part(part) for part in body["parts"]])


def content_of(body: JsonObject) -> Content:
    return _read(
        lambda: Content(
            str(body["uri"]),
            str(body["digest"]),
            int(body["length"]),
            str(body["media_type"]),
            str(body["file_name"]),
            str(body["url"]),
            dict(body.get("headers") or {}),
        )
    )


def _part(body: JsonObject) -> SignedPart:
    headers = dict(body.get("headers") or {})
    return SignedPart(int(body["number"]), str(body["method"]), str(body["url"]), headers)


def _read(make: Callable[[], T]) -> T:
    try:
        return make()
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Unavailable("what answers is not LUCIUS, or another version of it") from error
