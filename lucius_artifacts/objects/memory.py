"""Objects in memory, for tests and for models of what storage does.

Its addresses have a scheme of their own; `redeem_put` and `redeem_read` stand for the server that
would be asked with them.
"""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import datetime
from urllib.parse import parse_qsl, urlencode, urlsplit

from lucius_artifacts.errors import Gone, NotFound
from lucius_artifacts.objects.keys import check_part, checked_key, not_as_long
from lucius_artifacts.ports.objects import CHUNK, SignedRequest
from lucius_artifacts.signing import Offered, UrlSigner

_KEY_BYTES = 32


class MemoryObjects:
    largest_part = 64 * 1024**2
    most_parts = 10_000

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._places: dict[str, dict[int, bytes]] = {}
        self._frozen: dict[str, dict[int, bytes]] = {}
        self._signer = UrlSigner([secrets.token_bytes(_KEY_BYTES)], clock)

    async def begin(self, key: str) -> None:
        self._places.setdefault(checked_key(key), {})

    async def sign_part(
        self, key: str, number: int, length: int, expires_at: datetime
    ) -> SignedRequest:
        check_part(number, length, self.most_parts, self.largest_part)
        query = self._signer.sign_part(checked_key(key), number, length, expires_at)
        return _signed("PUT", f"{key}/parts/{number}", query, expires_at)

    async def put_part(
        self, key: str, number: int, length: int, content: AsyncIterator[bytes]
    ) -> None:
        check_part(number, length, self.most_parts, self.largest_part)
        self._place(key)
        received = bytearray()
        async for chunk in content:
            received += chunk
            if len(received) > length:
                break
        if len(received) != length:
            raise not_as_long(number, length)
        self._place(key)[number] = bytes(received)

    async def parts(self, key: str) -> dict[int, int]:
        found = self._frozen.get(checked_key(key)) or self._places.get(key) or {}
        return {number: len(part) for number, part in sorted(found.items())}

    async def freeze(self, key: str, count: int) -> None:
        if checked_key(key) in self._frozen:
            return
        place = self._places.get(key)
        if place is None:
            raise NotFound(f"place for parts of {key}")
        for number in range(1, count + 1):
            if number not in place:
                raise NotFound(f"part {number} of {key}")
        self._frozen[key] = {number: place[number] for number in range(1, count + 1)}
        del self._places[key]

    async def read(self, key: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        content = self._content(key)[start:end]
        for begin in range(0, len(content), CHUNK):
            yield content[begin : begin + CHUNK]

    async def sign_read(
        self, key: str, expires_at: datetime, media_type: str, file_name: str
    ) -> SignedRequest:
        query = self._signer.sign_read(checked_key(key), media_type, file_name, expires_at)
        return _signed("GET", key, query, expires_at)

    async def delete(self, key: str) -> None:
        self._places.pop(checked_key(key), None)
        self._frozen.pop(key, None)

    async def check(self) -> None:
        """It always answers."""

    async def close(self) -> None:
        """Nothing is held."""

    async def redeem_put(self, url: str, content: AsyncIterator[bytes]) -> None:
        """What happens when somebody puts a part to this address. `SignatureRefused` if it was
        altered or has expired, else as `put_part`."""
        path, query = _read(url)
        key, _, number = path.partition("/parts/")
        length = self._signer.accept_part(key, int(number), query)
        await self.put_part(key, int(number), length, content)

    async def redeem_read(self, url: str) -> tuple[Offered, bytes]:
        """What somebody gets who reads this address, and as what."""
        key, query = _read(url)
        offered = self._signer.accept_read(key, query)
        return offered, self._content(key)

    def _place(self, key: str) -> dict[int, bytes]:
        try:
            return self._places[checked_key(key)]
        except KeyError as error:
            raise Gone(f"the place for parts of {key}") from error

    def _content(self, key: str) -> bytes:
        if checked_key(key) not in self._frozen:
            raise NotFound(f"object {key}")
        return b"".join(self._frozen[key].values())


def _signed(
    method: str, path: str, query: Mapping[str, str], expires_at: datetime
) -> SignedRequest:
    url = f"memory://objects/{path}?{urlencode(query)}"
    return SignedRequest(method, url, expires_at.replace(microsecond=0))


def _read(url: str) -> tuple[str, dict[str, str]]:
    parts = urlsplit(url)
    return parts.path.removeprefix("/"), dict(parse_qsl(parts.query, keep_blank_values=True))
