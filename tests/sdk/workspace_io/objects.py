"""Objects, written in both ways that there are, and read."""

import io
from typing import Protocol

import pytest

from lucius_sdk.workspace_io import Storage
from tests.sdk.workspace_io.stage import fence


class Write(Protocol):
    def __call__(self, storage: Storage, uri: str, content: bytes = b"new", /) -> None: ...


def create(storage: Storage, uri: str, content: bytes = b"new", /) -> None:
    sink = storage.create(uri, "text/plain")
    try:
        sink.write(content)
        sink.commit()
    finally:
        sink.discard()


def publish(storage: Storage, uri: str, content: bytes = b"new", /) -> None:
    storage.publish(uri, lambda: io.BytesIO(content), fence(), "text/plain")


def read(storage: Storage, uri: str) -> bytes:
    with storage.open_read(uri) as stream:
        return stream.read()


def pattern(size: int) -> bytes:
    """In which no piece is like another."""
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))[:size]


both_ways_to_write = pytest.mark.parametrize("write", [create, publish])
