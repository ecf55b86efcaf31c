"""Where the bytes are.

An object has a key that is used once. It is first a place for parts, which come in any order, may
come again, and may come from outside through signed URLs; then it is frozen, and nothing that
anybody was ever handed can change it; then it is deleted. Its bytes are the parts' in the order of
their numbers.
"""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

CHUNK = 4 * 1024 * 1024
"""The most bytes of one object that are in memory at once, whoever reads it."""


@dataclass(frozen=True, slots=True)
class SignedRequest:
    """What a client does with no other credential, until `expires_at`. It sends the headers, too.
    The url is a secret: it never reaches a log."""

    method: str
    url: str = field(repr=False)
    expires_at: datetime
    headers: Mapping[str, str] = field(default_factory=dict)


class Objects(Protocol):
    """A failing storage is `Unavailable`. Close it once."""

    largest_part: int
    """In bytes; `most_parts` of them make the largest object."""
    most_parts: int

    async def begin(self, key: str) -> None:
        """Make the place for parts. Again is no error; after `freeze` or `delete` it is not called:
        what it does then is undefined."""
        ...

    async def sign_part(
        self, key: str, number: int, length: int, expires_at: datetime
    ) -> SignedRequest:
        """How to bring one part. Storage that can hold the client to `length` does."""
        ...

    async def put_part(
        self, key: str, number: int, length: int, content: AsyncIterator[bytes]
    ) -> None:
        """Bring one part ourselves; one that is there is replaced, at once and wholly.

        `Invalid` (field `part`) if the content is not `length` bytes long: nothing is replaced.
        `Gone` if there is no place for parts (any more): frozen, deleted, never begun.
        """
        ...

    async def parts(self, key: str) -> dict[int, int]:
        """Sizes of the parts that are there, by number. Of a frozen object: those it was made of.
        Empty if there is no object of that key."""
        ...

    async def freeze(self, key: str, count: int) -> None:
        """Make the object of parts 1 to `count`; afterwards no signed request and no `put_part`
        changes its bytes. Parts with other numbers are not in it. Again is no error.

        When it has returned, the bytes are durable. `NotFound` if a part is missing: nothing has
        changed, or (when the key was deleted) never will.
        """
        ...

    def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """The bytes of a frozen object from `start` to before `end`, in chunks of up to CHUNK.
        `NotFound` at the first chunk if there is no such object or it is not frozen."""
        ...

    async def sign_read(
        self, key: str, expires_at: datetime, media_type: str, file_name: str
    ) -> SignedRequest:
        """How to read a frozen object, or a range of it, without any other credential. It is
        offered for saving under `file_name`, never for showing in a page."""
        ...

    async def delete(self, key: str) -> None:
        """The object and its parts, frozen or not. One that is not there is no error."""
        ...

    async def check(self) -> None:
        """`Unavailable` unless the storage answers."""
        ...

    async def close(self) -> None: ...


@runtime_checkable
class Digesting(Protocol):
    """A storage that can say more quickly than by `read` what it has stored."""

    async def digest(self, key: str) -> tuple[str, int]:
        """SHA-256, in lower-case hex, and length of the bytes of a frozen object, read from where
        they are stored. `NotFound` if there is no such object."""
        ...
