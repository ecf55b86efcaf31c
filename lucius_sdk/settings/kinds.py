"""Kinds of values that only services have.

What an address might hide is never shown again: people put credentials into them.
"""

import re
from itertools import pairwise
from os.path import abspath
from pathlib import Path
from urllib.parse import urlsplit

from lucius_contract.routing import LANES as LANE_COUNT
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.idempotency_store.azure_address import blobs_of, table_of
from lucius_sdk.workspace_io.s3.places import folder_place
from lucius_sdk.workspace_io.uris import file_path
from lucius_settings.kinds import Kind, Refused, entries, matching, must
from lucius_settings.secret import MASK, Secret

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")
_RANGE = re.compile(r"([0-9]{1,2})(?:-([0-9]{1,2}))?")
_STORES = ("memory:", "sqlite:", "redis://", "rediss://", "unix://", "aztable:", "azblob:")

SYSTEM = matching(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
    "1 to 64 letters, digits, dots, underscores or hyphens, a letter or digit first",
)
SERVICE = matching(
    r"[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?", "1 to 50 lower-case letters, digits or inner hyphens"
)


def is_of_blobs(place: str) -> bool:
    """Whether a folder, or a dedup store, is in a storage account's blobs."""
    return place.lower().startswith(("az:", "azblob:"))


def is_of_s3(place: str) -> bool:
    return place.lower().startswith("s3:")


def is_of_tables(store: str) -> bool:
    return store.startswith("aztable:")


def _folder(text: str, rule: str) -> str:
    """A uri is read as the refs below it will be, so that what is accepted here works there."""
    scheme = _SCHEME.match(text)
    if scheme is None:
        return text
    try:
        if is_of_blobs(scheme[0]):
            return _blob_folder(text)
        path = file_path(text)
    except NonRetryableError as error:
        raise Refused(f"is no folder that can be used; must be {rule}") from error
    if path == Path("/"):
        raise Refused(f"names no folder; must be {rule}")
    return str(path)


def _blob_folder(uri: str) -> str:
    try:
        from lucius_sdk.workspace_io.blob.places import folder_place as blob_place
    except ModuleNotFoundError as error:
        raise Refused("is of blobs, which need: pip install 'lucius-sdk[azure]'") from error
    return blob_place(uri).uri


def _read_root(text: str) -> str:
    """One that is not the workspace's may be in S3 too."""
    if not is_of_s3(text):
        return _folder(text, ROOTS.rule)
    try:
        return folder_place(text).uri
    except NonRetryableError as error:
        raise Refused(f"is no folder that can be used; must be {ROOTS.rule}") from error


def _read_folder(text: str) -> str:
    return _folder(text, FOLDER.rule)


FOLDER = Kind(
    "a folder of this machine, as a path or as a uri like file:///srv/work, or one of blobs, as"
    " az://container/folder",
    _read_folder,
)


def _read_roots(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(_read_root, entries(text, ROOTS.rule))))


ROOTS = Kind(
    "a comma list of folders, as paths, file uris, az uris or s3 uris",
    _read_roots,
    ",".join,
    empty=(),
)


def absolute(folder: str) -> str:
    """A path as it is now; a uri as it is."""
    return folder if is_of_blobs(folder) or is_of_s3(folder) else abspath(folder)


def _read_store(text: str) -> Secret:
    if not text.startswith(_STORES):
        raise Refused(f"has another form; must be {STORE.rule}")
    scheme, _, rest = text.partition(":")
    if scheme == "sqlite" and not rest.strip("/"):
        raise Refused(f"names no file; must be {STORE.rule}")
    try:
        if scheme == "aztable":
            table_of(rest)
        elif scheme == "azblob":
            blobs_of(rest)
    except ValueError as error:
        raise Refused(f"has another form ({error}); must be {STORE.rule}") from error
    return Secret(text)


def _without_credential(store: Secret) -> str:
    scheme, separator, rest = store.reveal().partition("://")
    if not separator:
        return scheme
    _, at, place = rest.rpartition("@")
    place, query, _ = place.partition("?")
    return f"{scheme}://{MASK + at if at else ''}{place}{query and query + MASK}"


STORE = Kind(
    "sqlite: and a path (sqlite:///srv/dedup.db, sqlite:dedup.db), a redis://, rediss:// or unix://"
    " url, aztable: and a table, azblob: and a container (azblob:dedup, azblob:dedup/ocr), or"
    " memory:",
    _read_store,
    _without_credential,
)


def _read_lanes(text: str) -> tuple[int, ...]:
    lanes: set[int] = set()
    for entry in entries(text, LANES.rule):
        found = _RANGE.fullmatch(entry)
        if found is None:
            raise must(LANES.rule, entry)
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last < LANE_COUNT:
            raise must(LANES.rule, entry)
        lanes.update(range(first, last + 1))
    return tuple(sorted(lanes))


def _written_lanes(lanes: tuple[int, ...]) -> str:
    starts = [lanes[0], *(after for before, after in pairwise(lanes) if after != before + 1)]
    ends = [*(before for before, after in pairwise(lanes) if after != before + 1), lanes[-1]]
    runs = zip(starts, ends, strict=True)
    return ",".join(f"{first}" if first == last else f"{first}-{last}" for first, last in runs)


LANES = Kind(
    f"a comma list of lanes and ranges of lanes from 0 to {LANE_COUNT - 1}, as 0,3,8-15",
    _read_lanes,
    _written_lanes,
)


def _read_base(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_one = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError as error:
        raise Refused(f"is no url; must be {BASE_URL.rule}") from error
    if not is_one or "@" in parts.netloc or " " in text or "?" in text or "#" in text:
        raise Refused(f"has another form; must be {BASE_URL.rule}")
    return text.rstrip("/")


BASE_URL = Kind("an http or https url without credentials, query and fragment", _read_base)


def _read_key(text: str) -> Secret:
    if not (text.isascii() and text.isprintable()) or " " in text:
        raise Refused(f"holds other characters; must be {API_KEY.rule}")
    return Secret(text)


API_KEY = Kind("a key that `lucius keys create` made", _read_key)
