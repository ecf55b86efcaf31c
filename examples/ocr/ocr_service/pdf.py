"""Pages of a PDF: their text layer where they have one, else their picture."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any, BinaryIO

import pypdfium2
import pypdfium2.raw as pdfium

from ocr_service.limits import Limits
from ocr_service.raster import Raster
from ocr_service.refusals import invalid
from ocr_service.text import readable_letters, tidied

_POINTS_PER_INCH = 72
_FEW_LETTERS = 20
"""A page number, not the text of a page."""
_FEW_ON_PICTURE = 200
"""A scanner's stamp, or a footer on a scan."""

_one_at_a_time = threading.Lock()
"""PDFium has one state for the whole process: two threads in it at once bring the process down.
What it gave is closed under the lock too, and not left to the garbage collector, which runs in any
thread."""

_REASONS = {
    pdfium.FPDF_ERR_PASSWORD: "the PDF is encrypted: remove its password",
    pdfium.FPDF_ERR_SECURITY: "the PDF is encrypted in a way that cannot be read",
}
_DAMAGED = "the PDF is damaged or has no pages"

Handle = Any
"""Of pypdfium2, which comes without types."""


@contextmanager
def open_pdf(file: BinaryIO, dpi: int, limits: Limits) -> Iterator["PdfPages"]:
    with _pdfium(_DAMAGED):
        _forget_last_error()
        document = pypdfium2.PdfDocument(file)
    try:
        yield PdfPages(document, dpi, limits)
    finally:
        with _pdfium(_DAMAGED):
            document.close()


def _forget_last_error() -> None:
    """A file without pages has no error of its own: PDFium would tell that of the file before."""
    pdfium.FPDF_LoadMemDocument(b"", 0, None)


@contextmanager
def _pdfium(damage: str) -> Iterator[None]:
    """Be the only one in PDFium; what it cannot read is called `damage`."""
    try:
        with _one_at_a_time:
            yield
    except pypdfium2.PdfiumError as error:
        raise invalid(_REASONS.get(error.err_code, damage)) from error


class PdfPages:
    def __init__(self, document: Handle, dpi: int, limits: Limits) -> None:
        self._document = document
        self._dpi = dpi
        self._limits = limits
        with _pdfium(_DAMAGED):
            document.init_forms()
            self.page_count = len(document)
        limits.check_pages(self.page_count)

    def page(self, number: int) -> str | Raster:
        with _pdfium(f"page {number} of the PDF is damaged"), self._opened(number) as page:
            text = _text_layer(page)
            return text if _suffices(text, page) else self._rendered(page, number)

    @contextmanager
    def _opened(self, number: int) -> Iterator[Handle]:
        """What was filled in or pinned on (fields, stamps, notes) becomes a part of the page."""
        page = self._document[number - 1]
        if pdfium.FPDFPage_Flatten(page, pdfium.FLAT_NORMALDISPLAY) == pdfium.FLATTEN_SUCCESS:
            page.close()
            page = self._document[number - 1]
        try:
            yield page
        finally:
            page.close()

    def _rendered(self, page: Handle, number: int) -> Raster:
        scale = self._dpi / _POINTS_PER_INCH
        width, height = (ceil(side * scale) for side in page.get_size())
        self._limits.check_picture(number, width, height)
        bitmap = page.render(scale=scale, grayscale=True)
        try:
            pixels = bytes(bitmap.buffer)
            return Raster(pixels, bitmap.width, bitmap.height, bitmap.stride, self._dpi)
        finally:
            bitmap.close()


def _text_layer(page: Handle) -> str:
    layer = page.get_textpage()
    try:
        return tidied(layer.get_text_bounded())
    finally:
        layer.close()


def _suffices(text: str, page: Handle) -> bool:
    """Whether the text layer is what stands on the page."""
    letters = readable_letters(text)
    if letters >= _FEW_ON_PICTURE:
        return True
    return letters >= _FEW_LETTERS and not _is_mostly_picture(page)


def _is_mostly_picture(page: Handle) -> bool:
    covered = 0.0
    for picture in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE]):
        left, bottom, right, top = picture.get_bounds()
        covered += (right - left) * (top - bottom)
    width, height = page.get_size()
    return covered * 2 > float(width * height)
