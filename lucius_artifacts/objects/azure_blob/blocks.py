"""Parts as blocks. The ids of all blocks of a blob have the same length."""

import re
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote

from azure.storage.blob import BlobBlock

_ID = re.compile(r"part-([0-9]{5})")


def block_id(number: int) -> str:
    return f"part-{number:05d}"


def block_query(number: int) -> str:
    """What makes of a PUT to the blob one of this block."""
    encoded = b64encode(block_id(number).encode()).decode()
    return f"comp=block&blockid={quote(encoded, safe='')}"


def block_list(count: int) -> list[BlobBlock]:
    """Of a block that is there both committed and not, the one that came last is taken."""
    return [BlobBlock(block_id(number)) for number in range(1, count + 1)]


def sizes_of(blocks: Iterable[BlobBlock]) -> dict[int, int]:
    """By number; of blocks with the same, the last one. Whoever may put blocks may give them any
    id: those that are none of ours are in no object."""
    found = {}
    for block in blocks:
        named = _ID.fullmatch(block.id)
        if named:
            found[int(named[1])] = block.size
    return dict(sorted(found.items()))
