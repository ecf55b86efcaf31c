"""URIs of objects: `s3://<bucket>/<key>`. Which store they are in is a matter of settings.

A key is what the uri's path is, percent-decoded once. Keys with empty segments, or segments of dots
alone, are keys to S3; they are no uris here, since elsewhere they would name another folder.
"""

import re
from typing import NamedTuple
from urllib.parse import quote

from lucius_sdk.workspace_io.access import Location
from lucius_sdk.workspace_io.uris import check_bare, decoded_segment, refused, split_uri

SCHEME = "s3"
KEY_LIMIT = 1024
_BUCKET = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+([.-]?[a-z0-9]|-+[a-z0-9])*")


class Place(NamedTuple):
    """An object, or a folder of objects: one without segments is the whole bucket."""

    bucket: str
    segments: tuple[str, ...]

    @property
    def key(self) -> str:
        return "/".join(self.segments)

    @property
    def uri(self) -> str:
        return f"{SCHEME}://{'/'.join((self.bucket, *map(quote, self.segments)))}"

    @property
    def location(self) -> Location:
        return (self.bucket, *self.segments)


def object_place(uri: str) -> Place:
    """INPUT_INVALID if it names no object."""
    place = _place(uri, uri)
    if not place.segments:
        raise refused(uri, "names a bucket, not an object in it")
    return place


def folder_place(uri: str) -> Place:
    """The same for a folder; a slash at its end says nothing more."""
    return _place(uri, uri.removesuffix("/"))


def _place(uri: str, bare: str) -> Place:
    parts = split_uri(bare)
    if parts.scheme != SCHEME or not _BUCKET.fullmatch(parts.netloc):
        raise refused(uri, "does not have the form s3://bucket/key")
    check_bare(uri, parts)
    raw = parts.path.split("/")[1:]
    segments = tuple(decoded_segment(uri, segment, KEY_LIMIT) for segment in raw)
    place = Place(parts.netloc, segments)
    if len(place.key.encode()) > KEY_LIMIT:
        raise refused(uri, f"has a key of more than {KEY_LIMIT} bytes")
    return place
