"""Documents that the tests make, and the shipped ones."""

import ctypes
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium
import pytest
from PIL import Image, ImageDraw, ImageFont

A5 = (420, 595)


@pytest.fixture(scope="session")
def documents() -> Path:
    return Path(__file__).parents[2] / "documents"


@pytest.fixture(scope="session")
def picture() -> Callable[..., Image.Image]:
    """`picture("Some words")` is a white page with black words; a line each."""

    def make(text: str = "", size: tuple[int, int] = (800, 200), letters: int = 44) -> Image.Image:
        page = Image.new("L", size, "white")
        font = ImageFont.load_default(letters)
        ImageDraw.Draw(page).multiline_text((50, 50), text, "black", font, spacing=20)
        return page

    return make


@pytest.fixture(scope="session")
def saved() -> Callable[..., bytes]:
    """`saved(image, "TIFF", ...)` is the file's content."""

    def save(image: Image.Image, kind: str, **options: Any) -> bytes:
        file = io.BytesIO()
        image.save(file, kind, **options)
        return file.getvalue()

    return save


@pytest.fixture(scope="session")
def pdf() -> Callable[..., bytes]:
    """`pdf("Some words", image, None)`: a page with a text layer, a scan, a blank page."""

    def make(*pages: str | Image.Image | tuple[str, Image.Image] | None) -> bytes:
        with pypdfium2.PdfDocument.new() as document:
            font = pdfium.FPDFText_LoadStandardFont(document, b"Helvetica")
            for content in pages:
                page = document.new_page(*A5)
                text, image = content if isinstance(content, tuple) else (content, content)
                if isinstance(image, Image.Image):
                    _put_image(document, page, image)
                if isinstance(text, str):
                    _put_text(document, page, font, text)
                page.gen_content()
            pdfium.FPDFFont_Close(font)
            file = io.BytesIO()
            document.save(file)
        return file.getvalue()

    return make


@pytest.fixture(scope="session")
def raw_pdf() -> Callable[..., bytes]:
    """`raw_pdf(b"<<...>>", ..., trailer=b"...")`: objects from 1 on; the first is the catalog."""

    def make(*objects: bytes, trailer: bytes = b"") -> bytes:
        content = b"%PDF-1.7\n"
        places = []
        for number, body in enumerate(objects, 1):
            places.append(len(content))
            content += b"%d 0 obj %b endobj\n" % (number, body)
        table = b"".join(b"%010d 00000 n \n" % place for place in places)
        size = len(objects) + 1
        return content + (
            b"xref\n0 %d\n0000000000 65535 f \n%b" % (size, table)
            + b"trailer <</Size %d /Root 1 0 R %b>>\n" % (size, trailer)
            + b"startxref\n%d\n%%%%EOF\n" % len(content)
        )

    return make


def _put_text(document: Any, page: Any, font: Any, text: str) -> None:
    for line, words in enumerate(text.splitlines()):
        written = pdfium.FPDFPageObj_CreateTextObj(document, font, 12)
        wide = ctypes.create_string_buffer(f"{words}\0".encode("utf-16-le"))
        pdfium.FPDFText_SetText(written, ctypes.cast(wide, pdfium.FPDF_WIDESTRING))
        pdfium.FPDFPageObj_Transform(written, 1, 0, 0, 1, 30, A5[1] - 50 - 20 * line)
        pdfium.FPDFPage_InsertObject(page, written)


def _put_image(document: Any, page: Any, image: Image.Image) -> None:
    """Over the whole page."""
    file = io.BytesIO()
    image.save(file, "JPEG")
    placed = pypdfium2.PdfImage.new(document)
    placed.load_jpeg(file, inline=True)
    placed.set_matrix(pypdfium2.PdfMatrix().scale(*A5))
    page.insert_obj(placed)
