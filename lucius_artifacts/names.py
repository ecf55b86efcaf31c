"""What things are called: digests, artifacts, paths inside a version, and the uris of all three.

    artifact://<name>                    an artifact: where a job publishes its next version
    artifact://<name>/v<N>/<path>        one file of a version
    artifact://blobs/<sha256>            content by its digest, as an upload leaves it

No uri names a tenant: it is the one of the job or the caller.
"""

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from lucius_artifacts.errors import Invalid

SCHEME = "artifact"
BLOBS = "blobs"
RESERVED = frozenset({BLOBS, "uploads", "content", "objects", "versions", "runs"})
"""Not names of artifacts: paths of the API, or of the uris above."""

PATH_LIMIT = 512
"""In bytes of UTF-8."""

_DIGEST = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
_URI = re.compile(
    r"artifact://(?P<name>[^/?#]+)(?:/v(?P<number>[1-9][0-9]{0,8})/(?P<path>[^?#]+))?"
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\\]")


@dataclass(frozen=True, slots=True)
class ArtifactUri:
    """Where a new version goes."""

    name: str

    def __str__(self) -> str:
        return f"{SCHEME}://{self.name}"


@dataclass(frozen=True, slots=True)
class FileUri:
    name: str
    number: int
    path: str

    def __str__(self) -> str:
        return f"{SCHEME}://{self.name}/v{self.number}/{quote(self.path, safe='/~+=,@')}"


@dataclass(frozen=True, slots=True)
class BlobUri:
    digest: str

    def __str__(self) -> str:
        return f"{SCHEME}://{BLOBS}/{self.digest}"


Uri = ArtifactUri | FileUri | BlobUri


def parse_uri(uri: str, field: str = "uri") -> Uri:
    if uri.startswith(f"{SCHEME}://{BLOBS}/"):
        return BlobUri(checked_digest(uri.removeprefix(f"{SCHEME}://{BLOBS}/"), field))
    found = _URI.fullmatch(uri)
    if found is None:
        raise Invalid(
            field,
            "is not artifact://<name>, artifact://<name>/v<N>/<path> or artifact://blobs/<sha256>",
        )
    name = checked_name(found["name"], field)
    if found["number"] is None:
        return ArtifactUri(name)
    return FileUri(name, int(found["number"]), checked_path(_decoded(found["path"], field), field))


def checked_digest(digest: str, field: str = "digest") -> str:
    if _DIGEST.fullmatch(digest) is None:
        raise Invalid(field, "is not a SHA-256 digest: 64 hexadecimal digits in lower case")
    return digest


def checked_name(name: str, field: str = "name") -> str:
    if _NAME.fullmatch(name) is None or ".." in name or name.endswith("."):
        raise Invalid(
            field,
            "is not the name of an artifact: up to 128 lower-case letters, digits, dots, dashes and"
            " underscores, the first one a letter or a digit, no two dots together, no dot at the"
            " end",
        )
    if name in RESERVED:
        raise Invalid(field, f"is reserved ({', '.join(sorted(RESERVED))}): choose another name")
    return name


def checked_path(path: str, field: str = "path") -> str:
    """One that means the same on every storage, and never leaves its folder."""
    segments = path.split("/")
    if _CONTROL.search(path) or any(segment in {"", ".", ".."} for segment in segments):
        raise Invalid(
            field,
            "is not a relative path of names between slashes, without '.', '..', backslashes and"
            " control characters",
        )
    try:
        size = len(path.encode())
    except UnicodeEncodeError as error:
        raise Invalid(field, "holds half of a surrogate pair") from error
    if size > PATH_LIMIT:
        raise Invalid(field, f"has {size} bytes; at most {PATH_LIMIT} are allowed")
    return path


def _decoded(path: str, field: str) -> str:
    try:
        return unquote(path, errors="strict")
    except UnicodeDecodeError as error:
        raise Invalid(field, "holds percent-encoded bytes that are not UTF-8") from error
