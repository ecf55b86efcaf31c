"""Blobs as streams."""

import io
from typing import Any, BinaryIO

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import BlobClient

from lucius_sdk.workspace_io.blob.faults import NO_SUCH_RANGE, faults, reading
from lucius_sdk.workspace_io.streams import CHUNK, Window, WindowStream

WINDOW = 4 * 1024 * 1024


def open_blob(blob: BlobClient, uri: str, window: int = WINDOW) -> BinaryIO:
    def fetch(start: int, etag: str | None) -> Window:
        """As it is stored: what says to be compressed is not unpacked."""
        with faults(reading, uri):
            try:
                found = blob.download_blob(start, window, decompress=False, **_condition(etag))
            except HttpResponseError as error:
                if error.status_code == NO_SUCH_RANGE and etag is None:
                    return Window(b"", None, 0)  # an empty blob has no first byte
                raise
            content = found.readall()
        size = int((found.properties.content_range or "").rpartition("/")[2])
        return Window(content, found.properties.etag, size)

    return io.BufferedReader(WindowStream(fetch), CHUNK)


def _condition(etag: str | None) -> dict[str, Any]:
    if etag is None:
        return {}
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}
