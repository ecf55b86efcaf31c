"""URIs of blobs: `az://<container>/<path>`. Which account they are of is a matter of settings."""

import re
from typing import NamedTuple
from urllib.parse import quote

from lucius_sdk.workspace_io.access import Location
from lucius_sdk.workspace_io.uris import check_bare, decoded_segment, refused, split_uri

SCHEME = "az"
NAME_LIMIT = 1024
SEGMENTS = 254
_BYTES_OF_CHARACTER = 4
_CONTAINER = re.compile(r"(?=.{3,63}\Z)[a-z0-9]+(-[a-z0-9]+)*")


class Place(NamedTuple):
    """A blob, or a folder of blobs: one without segments is the whole container."""

    container: str
    segments: tuple[str, ...]

    @property
    def name(self) -> str:
        """As the service knows it."""
        return "/".join(self.segments)

    @property
    def uri(self) -> str:
        return f"{SCHEME}://{'/'.join((self.container, *map(quote, self.segments)))}"

    @property
    def location(self) -> Location:
        return (self.container, *self.segments)


def blob_place(uri: str) -> Place:
    """INPUT_INVALID if it names no blob."""
    place = _place(uri, uri)
    if not place.segments:
        raise refused(uri, "names a container, not a blob in it")
    return place


def folder_place(uri: str) -> Place:
    """The same for a folder; a slash at its end says nothing more."""
    return _place(uri, uri.removesuffix("/"))


def _place(uri: str, bare: str) -> Place:
    parts = split_uri(bare)
    if parts.scheme != SCHEME or not _CONTAINER.fullmatch(parts.netloc):
        raise refused(uri, "does not have the form az://container/path")
    check_bare(uri, parts)
    limit = _BYTES_OF_CHARACTER * NAME_LIMIT
    raw = parts.path.split("/")[1:]
    segments = tuple(decoded_segment(uri, segment, limit) for segment in raw)
    place = Place(parts.netloc, segments)
    if len(place.name) > NAME_LIMIT or len(segments) > SEGMENTS:
        raise refused(uri, f"has more than {NAME_LIMIT} characters or {SEGMENTS} segments")
    return place
