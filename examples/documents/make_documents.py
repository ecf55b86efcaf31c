"""Makes the demo documents: an invoice as it was printed, the same one scanned, its text, and the
one-line page that the OCR service's contract is judged with.

    python examples/documents/make_documents.py

The same versions of PDFium and Pillow give the same bytes.
"""

import ctypes
import io
import re
from pathlib import Path
from random import Random
from typing import Any

import pypdfium2
import pypdfium2.raw as pdfium
from invoice import LEFT, PAGE_HEIGHT, PAGE_WIDTH, RIGHT, Cell, Page, pages, text_of
from PIL import Image, ImageChops, ImageDraw, ImageFilter, ImageFont

FOLDER = Path(__file__).parent
SAMPLE = FOLDER.parent / "ocr" / "samples" / "page.png"

SCAN_DPI = 200
PAPER = 250
"""The grey of white paper under a scanner's lamp."""
SKEWS = (0.7, -0.5)
"""How crooked the pages lay, in degrees."""
SEED = 417
MADE_AT = b"20260314090000"
NOISE = 24
"""The darkest and the lightest speck are this many greys apart."""

Handle = Any
"""Of PDFium, which comes without types."""


def main() -> None:
    invoice = printed(pages())
    (FOLDER / "invoice.pdf").write_bytes(invoice)
    (FOLDER / "invoice-scan.pdf").write_bytes(scanned(invoice))
    (FOLDER / "invoice.txt").write_text(text_of(pages()), encoding="utf-8")
    SAMPLE.write_bytes(sample())


def printed(pages: list[Page]) -> bytes:
    """A PDF with a text layer. Its fonts are two of those that every reader has."""
    saved = io.BytesIO()
    with pypdfium2.PdfDocument.new() as pdf:
        fonts = [
            pdfium.FPDFText_LoadStandardFont(pdf, n) for n in (b"Helvetica", b"Helvetica-Bold")
        ]
        for page in pages:
            _print_page(pdf, page, fonts)
        for font in fonts:
            pdfium.FPDFFont_Close(font)
        pdf.save(saved)
    return _undated(saved.getvalue())


def _print_page(pdf: Handle, page: Page, fonts: list[Handle]) -> None:
    sheet = pdf.new_page(PAGE_WIDTH, PAGE_HEIGHT)
    for cell in (cell for row in page.rows for cell in row):
        _print_cell(pdf, sheet, cell, fonts[cell.bold])
    for y in page.rules:
        rule = pdfium.FPDFPageObj_CreateNewRect(LEFT, PAGE_HEIGHT - y, RIGHT - LEFT, 0.6)
        pdfium.FPDFPageObj_SetFillColor(rule, 110, 110, 110, 255)
        pdfium.FPDFPath_SetDrawMode(rule, pdfium.FPDF_FILLMODE_ALTERNATE, False)
        pdfium.FPDFPage_InsertObject(sheet, rule)
    sheet.gen_content()


def _print_cell(pdf: Handle, sheet: Handle, cell: Cell, font: Handle) -> None:
    text = pdfium.FPDFPageObj_CreateTextObj(pdf, font, cell.size)
    wide = ctypes.create_string_buffer(f"{cell.text}\0".encode("utf-16-le"))
    pdfium.FPDFText_SetText(text, ctypes.cast(wide, pdfium.FPDF_WIDESTRING))
    x = cell.x - _width(text) if cell.ends_at_x else cell.x
    pdfium.FPDFPageObj_Transform(text, 1, 0, 0, 1, x, PAGE_HEIGHT - cell.y)
    pdfium.FPDFPage_InsertObject(sheet, text)


def _undated(pdf: bytes) -> bytes:
    """Without the moment of its making and the number that PDFium draws for it. The length stays,
    since a PDF counts its bytes."""
    dated = re.sub(rb"(?<=/CreationDate\(D:)\d{14}", MADE_AT, pdf)
    return re.sub(rb"<[0-9A-F]{32}>", b"<%032d>" % SEED, dated)


def _width(text: Handle) -> float:
    left, bottom, right, top = (ctypes.c_float() for _ in range(4))
    pdfium.FPDFPageObj_GetBounds(text, left, bottom, right, top)
    return right.value


def scanned(document: bytes) -> bytes:
    """A PDF whose pages are images, as an office scanner makes them."""
    with pypdfium2.PdfDocument(document) as pdf:
        sheets = [page.render(scale=SCAN_DPI / 72, grayscale=True).to_pil().copy() for page in pdf]
    random = Random(SEED)  # noqa: S311 - the same specks each time
    first, *others = (_scan(*page, random) for page in zip(sheets, SKEWS, strict=True))
    saved = io.BytesIO()
    undated = {"creationDate": None, "modDate": None}
    first.save(
        saved,
        "PDF",
        save_all=True,
        append_images=others,
        resolution=SCAN_DPI,
        quality=50,
        **undated,
    )
    return saved.getvalue()


def _scan(sheet: Image.Image, skew: float, random: Random) -> Image.Image:
    paper = sheet.point([grey * PAPER // 255 for grey in range(256)])
    crooked = paper.rotate(skew, Image.Resampling.BICUBIC, fillcolor=PAPER)
    specks = Image.frombytes("L", sheet.size, random.randbytes(sheet.width * sheet.height))
    noise = specks.point([grey * NOISE // 256 for grey in range(256)])
    noisy = ImageChops.add(crooked, noise, offset=-NOISE // 2)
    return noisy.filter(ImageFilter.GaussianBlur(0.7))


def sample() -> bytes:
    page = Image.new("1", (420, 100), 1)
    ImageDraw.Draw(page).text((30, 22), "Invoice no. 417", 0, ImageFont.load_default(46))
    saved = io.BytesIO()
    page.save(saved, "PNG", optimize=True, dpi=(SCAN_DPI, SCAN_DPI))
    return saved.getvalue()


if __name__ == "__main__":
    main()
