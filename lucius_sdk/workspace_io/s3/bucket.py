"""Objects of buckets: read in windows, written whole or in parts, published under a fence."""

import io
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.port import Sink, Source
from lucius_sdk.workspace_io.s3.faults import (
    NO_RANGE,
    NOT_FOUND,
    code_of,
    faults,
    reading,
    status_of,
    unavailable,
)
from lucius_sdk.workspace_io.s3.places import Place
from lucius_sdk.workspace_io.s3.publishing import Publication
from lucius_sdk.workspace_io.s3.storage import S3Options
from lucius_sdk.workspace_io.s3.uploading import ObjectSink, Upload
from lucius_sdk.workspace_io.streams import CHUNK, Window, WindowStream

_CONNECTIONS = 1024  # at most, as many as a service can have slots
_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0


class Buckets:
    """Nothing is connected before the first request. May be used by many threads at once."""

    def __init__(self, options: S3Options) -> None:
        self._options = options
        config = Config(
            connect_timeout=_CONNECT_SECONDS,
            read_timeout=_ANSWER_SECONDS,
            retries={"mode": "standard", "total_max_attempts": options.tries},
            max_pool_connections=_CONNECTIONS,
            # Stores other than AWS rarely have a name of DNS for each bucket.
            s3={"addressing_style": "path" if options.endpoint else "auto"},
        )
        # A session of its own: the one that boto3 shares must not be used by several threads.
        session = boto3.session.Session()
        with faults(unavailable, options.endpoint or "s3:"):
            self._client = session.client("s3", endpoint_url=options.endpoint, config=config)

    def open_read(self, place: Place, uri: str) -> BinaryIO:
        def fetch(start: int, etag: str | None) -> Window:
            end = start + self._options.window - 1
            condition = {} if etag is None else {"IfMatch": etag}
            with faults(reading, uri):
                try:
                    found = self._client.get_object(
                        **_named(place), Range=f"bytes={start}-{end}", **condition
                    )
                except ClientError as error:
                    if code_of(error) == NO_RANGE and etag is None:
                        return Window(b"", None, 0)  # an empty object has no first byte
                    raise
                with found["Body"] as body:
                    content: bytes = body.read()
            return Window(content, found["ETag"], int(found["ContentRange"].rpartition("/")[2]))

        return io.BufferedReader(WindowStream(fetch), CHUNK)

    def size_of(self, place: Place, uri: str) -> int:
        with faults(reading, uri):
            try:
                found = self._client.head_object(**_named(place))
            except ClientError as error:
                if status_of(error) == NOT_FOUND:
                    self.check(place)  # the answer does not say whether there is a bucket
                raise
        return int(found["ContentLength"])

    def create(self, place: Place, uri: str, media_type: str) -> Sink:
        part = self._options.part
        return ObjectSink(Upload(self._client, _named(place), uri, media_type, {}, part=part), uri)

    def publish(
        self, place: Place, uri: str, source: Source, fence: Fence, media_type: str
    ) -> None:
        client, named, part = self._client, _named(place), self._options.part

        def begin(metadata: dict[str, str], before_parts: Callable[[], None]) -> Upload:
            return Upload(
                client, named, uri, media_type, metadata, part=part, before_parts=before_parts
            )

        Publication(client, named, uri, fence, begin).run(source)

    def check(self, place: Place) -> None:
        """STORAGE_UNAVAILABLE if the bucket cannot be reached."""
        with faults(unavailable, place.uri):
            self._client.head_bucket(Bucket=place.bucket)

    def close(self) -> None:
        with suppress(BotoCoreError):
            self._client.close()


def _named(place: Place) -> dict[str, Any]:
    return {"Bucket": place.bucket, "Key": place.key}
