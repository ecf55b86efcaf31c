"""What kind of document it is, by its first bytes. Names and media types are often wrong."""

from enum import StrEnum

HEAD = 1024
"""A PDF may have this much before it begins."""


class Kind(StrEnum):
    PDF = "PDF"
    PNG = "PNG"
    JPEG = "JPEG"
    TIFF = "TIFF"


_BEGINNINGS = {
    b"\x89PNG\r\n\x1a\n": Kind.PNG,
    b"\xff\xd8\xff": Kind.JPEG,
    b"II*\0": Kind.TIFF,
    b"MM\0*": Kind.TIFF,
    b"II+\0": Kind.TIFF,
    b"MM\0+": Kind.TIFF,
}


def kind_of(head: bytes) -> Kind | None:
    for beginning, kind in _BEGINNINGS.items():
        if head.startswith(beginning):
            return kind
    return Kind.PDF if b"%PDF-" in head[:HEAD] else None
