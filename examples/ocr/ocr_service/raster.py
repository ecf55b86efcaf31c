"""The picture of a page."""

from typing import NamedTuple


class Raster(NamedTuple):
    """Grey, a byte for each pixel."""

    pixels: bytes
    width: int
    height: int
    stride: int
    """Bytes from one line to the next."""
    dpi: int
    """Tesseract judges by it what is a line and what is a speck."""
