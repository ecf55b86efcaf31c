"""The addresses of the stores on Azure: `aztable:TABLE`, and `azblob:CONTAINER` or
`azblob:CONTAINER/FOLDER`. Which account they are in is a matter of settings."""

import re
from typing import NamedTuple

TABLE_RULE = (
    "aztable: and the name of a table: 3 to 63 letters and digits, a letter first, and not the word"
    " tables"
)
BLOB_RULE = (
    "azblob: and the name of a container: 3 to 63 lower-case letters, digits and single inner"
    " hyphens; a folder may follow, as in azblob:dedup/ocr, of letters, digits, hyphens,"
    " underscores and inner dots"
)
_TABLE = re.compile(r"[A-Za-z][A-Za-z0-9]{2,62}")
_CONTAINER = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
_SEGMENT = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_LONGEST_FOLDER = 256


class BlobPlace(NamedTuple):
    """`folder` is empty where the whole container is the store's."""

    container: str
    folder: str


def table_of(address: str) -> str:
    """What comes after `aztable:`; `ValueError` if that names no table."""
    if not _TABLE.fullmatch(address) or address.lower() == "tables":
        raise ValueError(f"the address of a dedup store in a table is {TABLE_RULE}")
    return address


def blobs_of(address: str) -> BlobPlace:
    """What comes after `azblob:`; `ValueError` if that names no container, or no folder in it."""
    container, slash, folder = address.partition("/")
    is_folder = not slash or all(_SEGMENT.fullmatch(name) for name in folder.split("/"))
    if not _CONTAINER.fullmatch(container) or not is_folder or len(folder) > _LONGEST_FOLDER:
        raise ValueError(f"the address of a dedup store in blobs is {BLOB_RULE}")
    return BlobPlace(container, folder)
