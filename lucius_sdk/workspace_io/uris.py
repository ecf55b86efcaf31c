"""URIs and the paths that they name. Decoded once, segment by segment: what a decoded segment holds
is a name, never a way to another folder."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.names import SEGMENT_LIMIT, segment_problem

ARTIFACT = "artifact"
"""The scheme of what the control plane keeps."""

_UNPRINTABLE = re.compile(r"[\s\x00-\x1f\x7f-\x9f]")


def split_uri(uri: str) -> SplitResult:
    if _UNPRINTABLE.search(uri):
        raise refused(uri, "holds white space or control characters; percent-encode them")
    try:
        parts = urlsplit(uri)
        _ = parts.port
    except ValueError as error:
        raise refused(uri, str(error)) from error
    if not parts.scheme:
        raise refused(uri, "has no scheme, as in file:///data/document.pdf")
    return parts


def file_path(uri: str) -> Path:
    """The absolute path, as it is written: symlinks are not looked at here."""
    parts = split_uri(uri)
    if parts.scheme != "file":
        raise refused(uri, "is not a file uri")
    if parts.netloc not in ("", "localhost") or not parts.path.startswith("/"):
        raise refused(uri, "does not have the form file:///absolute/path")
    check_bare(uri, parts)
    segments = (segment for segment in parts.path.split("/") if segment)
    return Path("/", *(decoded_segment(uri, segment) for segment in segments))


def file_uri(path: Path) -> str:
    return f"file://{quote(str(path))}"


def child_uri(folder: str, name: str) -> str:
    return f"{folder.rstrip('/')}/{quote(name)}"


def shown(uri: str) -> str:
    """Without what may be a secret: user, password, query and fragment."""
    bare = uri.partition("#")[0].partition("?")[0]
    scheme, colon, rest = bare.rpartition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}{colon}{place.rpartition('@')[2]}{slash}{path}"[:300]


def refused(uri: str, problem: str) -> NonRetryableError:
    return NonRetryableError(ErrorCode.INPUT_INVALID, f"the uri {shown(uri)!r} {problem}")


@contextmanager
def as_output() -> Iterator[None]:
    """A uri that cannot be used is an output here: OUTPUT_UNSUPPORTED instead of INPUT_INVALID."""
    try:
        yield
    except NonRetryableError as error:
        if error.code != ErrorCode.INPUT_INVALID:
            raise
        raise NonRetryableError(ErrorCode.OUTPUT_UNSUPPORTED, error.message) from error


def no_catalogue(uri: str) -> NonRetryableError:
    return refused(
        uri, "names an artifact, and nobody has said where those are: set LUCIUS_ARTIFACTS_URL"
    )


def check_bare(uri: str, parts: SplitResult) -> None:
    """INPUT_INVALID unless it ends with its path."""
    if parts.query or parts.fragment or uri.endswith(("?", "#")):
        raise refused(uri, "has a query or a fragment; percent-encode '?' and '#'")


def decoded_segment(uri: str, segment: str, limit: int = SEGMENT_LIMIT) -> str:
    try:
        name = unquote(segment, errors="strict")
    except UnicodeDecodeError as error:
        raise refused(uri, "is not UTF-8 once it is percent-decoded") from error
    problem = segment_problem(name, limit)
    if problem is not None:
        raise refused(uri, problem)
    return name
