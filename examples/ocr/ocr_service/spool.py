"""The input as a file: it can be sought in, and is never in memory as a whole."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from tempfile import TemporaryFile
from typing import BinaryIO

from lucius_sdk.workspace_io import Input

from ocr_service.limits import Limits

_CHUNK = 256 * 1024


@contextmanager
def spooled(source: Input, limits: Limits) -> Iterator[BinaryIO]:
    """The file has no name, so that not even a kill leaves it behind."""
    with TemporaryFile() as file:
        with source.open() as stream:
            for chunk in iter(partial(stream.read, _CHUNK), b""):
                limits.check_bytes(file.tell() + len(chunk))
                file.write(chunk)
        file.seek(0)
        yield file
