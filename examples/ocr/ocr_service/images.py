"""Pages that are pictures already: PNG, JPEG, and TIFF, which may have several."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL
from typing import BinaryIO

from PIL import Image, ImageOps

from ocr_service.kinds import Kind
from ocr_service.limits import Limits
from ocr_service.raster import Raster
from ocr_service.refusals import invalid, too_large

_USUAL_DPI = 200
_PLAUSIBLE_DPI = (100, 1200)
"""Cameras and drawing programs write 72 or 96 and mean nothing by it. Tesseract takes the word for
it and reads worse, much worse if it is told too many."""
_UNREADABLE = frozenset({"I", "F", "LAB"})
"""Modes of Pillow that cannot be made grey, or in which nobody knows what white is."""


@contextmanager
def open_image(file: BinaryIO, kind: Kind, limits: Limits) -> Iterator["ImagePages"]:
    with _decoding(kind):
        image = Image.open(file, formats=[kind])
    with image:
        yield ImagePages(image, kind, limits)


class ImagePages:
    def __init__(self, image: Image.Image, kind: Kind, limits: Limits) -> None:
        self._image = image
        self._kind = kind
        self._limits = limits
        self.page_count = self._count_frames() if kind is Kind.TIFF else 1

    def page(self, number: int) -> Raster:
        with _decoding(self._kind):
            self._image.seek(number - 1)
        self._limits.check_picture(number, *self._image.size)
        if self._image.mode in _UNREADABLE:
            raise invalid(
                f"page {number} has pixels of a kind that is not read; grey and colours are"
            )
        with _decoding(self._kind):
            return _raster(self._image)

    def _count_frames(self) -> int:
        """No further than is allowed: a hostile file has millions."""
        found = 0
        with _decoding(self._kind), suppress(EOFError):
            while found <= self._limits.max_pages:
                self._image.seek(found)
                found += 1
        self._limits.check_pages(found)
        return found


def _raster(image: Image.Image) -> Raster:
    image.draft("L", image.size)
    ImageOps.exif_transpose(image, in_place=True)
    grey = _grey(image)
    return Raster(grey.tobytes(), *grey.size, grey.width, _resolution(image))


def _grey(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):  # Pillow would cut off what is above 255
        return image.point(lambda value: value / 256).convert("L")
    if not image.has_transparency_data:
        return image.convert("L")
    grey, opacity = image.convert("LA").split()
    paper = Image.new("L", image.size, "white")
    paper.paste(grey, mask=opacity)
    return paper


def _resolution(image: Image.Image) -> int:
    lowest, highest = _PLAUSIBLE_DPI
    stated, *_ = image.info.get("dpi", (0,))
    return round(stated) if lowest <= stated <= highest else _USUAL_DPI


@contextmanager
def _decoding(kind: Kind) -> Iterator[None]:
    """Pillow meets damage with errors of nearly every kind. Those with a number are the system's,
    and are about the disk; EINVAL alone is about a file that points before its beginning."""
    try:
        yield
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise too_large(f"the {kind} has more pixels than can be read") from error
    except Exception as error:
        if isinstance(error, OSError) and error.errno not in (None, EINVAL):
            raise
        raise invalid(f"the {kind} is damaged") from error
