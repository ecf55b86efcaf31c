"""What people type of artifacts: versions, files of a version, spans of time."""

import re
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from lucius_artifacts.errors import Invalid
from lucius_artifacts.names import (
    SCHEME,
    ArtifactUri,
    BlobUri,
    FileUri,
    checked_name,
    checked_path,
    parse_uri,
)
from lucius_cli.failures import Unsuitable

_VERSION = re.compile(r"(?P<name>[^/]+)/v(?P<number>[1-9][0-9]{0,8})(?:/.*)?")
_SPAN = re.compile(r"(?P<count>[0-9]{1,9})(?P<unit>[smhdw]?)")
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}


class VersionName(NamedTuple):
    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name}/v{self.number}"


class LocalEntry(NamedTuple):
    """A file of this machine, and its path in the version."""

    path: str
    file: Path


class KnownEntry(NamedTuple):
    """Content that the server has."""

    path: str
    uri: str


def version_of(text: str) -> VersionName:
    """`NAME/vN`, or the uri of a version or of one of its files."""
    found = _VERSION.fullmatch(text.removeprefix(f"{SCHEME}://"))
    if found is None or found["name"] == "blobs":
        raise Unsuitable(f"{text} is no version: write NAME/vN, as invoices/v3, or its uri")
    return VersionName(artifact_name(found["name"]), int(found["number"]))


def artifact_name(text: str) -> str:
    """A name, or the uri of an artifact."""
    try:
        return checked_name(text.removeprefix(f"{SCHEME}://"))
    except Invalid as error:
        raise Unsuitable(f"{text} {error.problem}") from error


def content_uri(text: str) -> FileUri | BlobUri:
    try:
        found = parse_uri(text)
    except Invalid as error:
        raise Unsuitable(f"{text} {error.problem}") from error
    if isinstance(found, ArtifactUri):
        raise Unsuitable(f"{text} names no file: write {text}/v1/..., or see `artifacts list`")
    return found


def entry_of(text: str) -> LocalEntry | KnownEntry:
    """`FILE`, or `PATH=URI`."""
    path, equals, uri = text.rpartition(f"={SCHEME}://")
    if equals:
        return KnownEntry(entry_path(path), str(content_uri(f"{SCHEME}://{uri}")))
    file = Path(text)
    if not file.is_file():
        raise Unsuitable(f"{text} is no file, nor PATH=artifact://...")
    return LocalEntry(entry_path(file.name), file)


def entry_path(text: str) -> str:
    try:
        return checked_path(text)
    except Invalid as error:
        raise Unsuitable(f"the path {text!r} {error.problem}") from error


def span_of(text: str) -> timedelta:
    found = _SPAN.fullmatch(text)
    if found is None:
        raise Unsuitable(f"{text} is no span of time: write 90s, 15m, 12h, 7d or 2w")
    return timedelta(seconds=int(found["count"]) * _UNITS[found["unit"]])
