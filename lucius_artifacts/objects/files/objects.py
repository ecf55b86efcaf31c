"""The storage itself."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from datetime import datetime
from pathlib import Path
from urllib.parse import urlencode

from lucius_artifacts.objects.files import places
from lucius_artifacts.objects.files.hashing import Hashings
from lucius_artifacts.objects.files.incoming import IncomingPart
from lucius_artifacts.objects.files.layout import Layout
from lucius_artifacts.objects.files.reading import pieces, read_piece
from lucius_artifacts.objects.files.receiving import batches
from lucius_artifacts.objects.files.threads import Threads
from lucius_artifacts.objects.keys import check_part, checked_key
from lucius_artifacts.ports.objects import SignedRequest
from lucius_artifacts.signing import UrlSigner

ROUTE = "/v1/artifacts/objects"
"""Where addresses of objects lead, below the base url."""


class FileObjects:
    """Addresses lead to our own service, below `base_url`, which may be known only once it listens.
    It asks the same signer whether they are good (`accept_part`, `accept_read`), and then calls
    `put_part` with the length that was signed, or `read`."""

    largest_part = 1024**3
    most_parts = 10_000

    def __init__(self, root: Path, signer: UrlSigner, base_url: Callable[[], str] | str) -> None:
        self._layout = Layout(root)
        self._signer = signer
        self._base_url = base_url
        self._threads = Threads()
        self._hashings = Hashings()

    async def begin(self, key: str) -> None:
        await self._threads.run(places.begin, self._layout, key)

    async def sign_part(
        self, key: str, number: int, length: int, expires_at: datetime
    ) -> SignedRequest:
        check_part(number, length, self.most_parts, self.largest_part)
        query = self._signer.sign_part(checked_key(key), number, length, expires_at)
        return self._signed("PUT", f"{key}/parts/{number}", query, expires_at)

    async def put_part(
        self, key: str, number: int, length: int, content: AsyncIterator[bytes]
    ) -> None:
        check_part(number, length, self.most_parts, self.largest_part)
        part = IncomingPart(self._layout.place(key), number)
        try:
            async with aclosing(batches(content, number, length)) as received:
                await self._write(part, received)
            await self._threads.run(part.keep)
        finally:
            await self._threads.finish(part.discard)
        self._threads.start(self._hashings.of(key).advance, self._layout.place(key))

    async def parts(self, key: str) -> dict[int, int]:
        return await self._threads.run(places.parts, self._layout, key)

    async def freeze(self, key: str, count: int) -> None:
        await self._threads.finish(places.freeze, self._layout, key, count)

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        folder = self._layout.frozen(key)
        sizes = await self._threads.run(places.sizes_of_object, self._layout, key)
        for piece in pieces(sizes, start, end):
            yield await self._threads.run(read_piece, folder, piece)

    async def digest(self, key: str) -> tuple[str, int]:
        """SHA-256 and length of a frozen object; `NotFound` if there is none. What came in order
        was read while the rest was brought."""
        hashing = self._hashings.take(key)
        try:
            return await self._threads.run(hashing.finish, self._layout.frozen(key))
        finally:
            hashing.stop()

    async def sign_read(
        self, key: str, expires_at: datetime, media_type: str, file_name: str
    ) -> SignedRequest:
        query = self._signer.sign_read(checked_key(key), media_type, file_name, expires_at)
        return self._signed("GET", key, query, expires_at)

    async def delete(self, key: str) -> None:
        self._hashings.take(key).stop()
        await self._threads.finish(places.delete, self._layout, key)

    async def check(self) -> None:
        await self._threads.run(places.check, self._layout)

    async def close(self) -> None:
        self._hashings.stop()
        await self._threads.close()

    async def _write(self, part: IncomingPart, content: AsyncIterator[list[bytes]]) -> None:
        """While a batch is written the next one is received."""
        writing: asyncio.Future[None] | None = None
        async for batch in content:
            if writing is not None:
                await writing
            writing = self._threads.start(part.write, batch)
        if writing is not None:
            await writing

    def _signed(
        self, method: str, path: str, query: Mapping[str, str], expires_at: datetime
    ) -> SignedRequest:
        base = self._base_url if isinstance(self._base_url, str) else self._base_url()
        url = f"{base.rstrip('/')}{ROUTE}/{path}?{urlencode(query)}"
        return SignedRequest(method, url, expires_at.replace(microsecond=0))
