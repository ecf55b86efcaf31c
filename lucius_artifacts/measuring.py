"""Digest, length and proof of stored bytes, read once with bounded memory."""

import asyncio
import hmac
from hashlib import sha256

from lucius_artifacts.decisions.uploads import Measured
from lucius_artifacts.ports.objects import Digesting, Objects

_AT_ONCE = 64 * 1024
"""Bytes that are hashed sooner than a thread could be asked to."""


async def measure(objects: Objects, key: str, challenge: str | None = None) -> Measured:
    """While one chunk is hashed the next one is read. `NotFound` if there is no such object."""
    if challenge is None and isinstance(objects, Digesting):
        return Measured(*await objects.digest(key))
    meter = _Meter(challenge)
    hashing: asyncio.Future[None] | None = None
    async for chunk in objects.read(key):
        if hashing is not None:
            await hashing
            hashing = None
        if len(chunk) <= _AT_ONCE:
            meter.feed(chunk)
        else:
            hashing = asyncio.ensure_future(asyncio.to_thread(meter.feed, chunk))
    if hashing is not None:
        await hashing
    return meter.measured()


class _Meter:
    def __init__(self, challenge: str | None) -> None:
        self._length = 0
        self._digest = sha256()
        self._mac = None if challenge is None else hmac.new(challenge.encode(), digestmod=sha256)

    def feed(self, chunk: bytes) -> None:
        self._length += len(chunk)
        self._digest.update(chunk)
        if self._mac is not None:
            self._mac.update(chunk)

    def measured(self) -> Measured:
        proof = None if self._mac is None else self._mac.hexdigest()
        return Measured(self._digest.hexdigest(), self._length, proof)
