"""PDF: when the text layer is trusted, what is rendered, and what is refused."""

from collections.abc import Callable

import pytest
from lucius_sdk.testing import StepRun, run_step
from PIL import Image

from ocr_service.execute import service

Make = Callable[..., bytes]
Picture = Callable[..., Image.Image]

CATALOG = b"<</Type/Catalog /Pages 2 0 R>>"
ONE_PAGE = b"<</Type/Pages /Kids[3 0 R] /Count 1>>"
LOW = "\n" * 20
"""Puts words near the foot of the page."""
FONT = b"<</Type/Font /Subtype/Type1 /BaseFont/Helvetica>>"


def page(more: bytes = b"", width: int = 400) -> bytes:
    return b"<</Type/Page /Parent 2 0 R /MediaBox[0 0 %d 200] %b>>" % (width, more)


def stream(content: bytes, more: bytes = b"") -> bytes:
    return b"<<%b /Length %d>> stream\n%b\nendstream" % (more, len(content), content)


def read(document: bytes, **payload: object) -> StepRun:
    return run_step(service, payload, document)


def refusal(document: bytes, **payload: object) -> tuple[str, str | None, str]:
    done = read(document, **payload)
    assert done.error
    return done.status, done.code, done.error.message


def methods(done: StepRun) -> list[str]:
    return [page["method"] for page in done.json("pages.json")]


def test_a_page_number_on_a_scan_does_not_pass_for_its_text(pdf: Make, picture: Picture) -> None:
    done = read(pdf((f"{LOW}Page 1", picture("The words of the scan", (820, 1160)))))
    assert methods(done) == ["ocr"]
    assert "The words of the scan" in done.text("output.txt")


def test_a_stamp_on_a_scan_does_not_pass_for_its_text(pdf: Make, picture: Picture) -> None:
    stamp = f"{LOW}Received on 3 March 2026 at the post office of Ashwick"
    done = read(pdf((stamp, picture("The words of the scan", (820, 1160)))))
    assert methods(done) == ["ocr"]
    assert "The words of the scan" in done.text("output.txt")
    assert "post office of Ashwick" in done.text("output.txt")


def test_a_scan_that_was_recognised_before_keeps_its_text(pdf: Make, picture: Picture) -> None:
    layer = "\n".join(f"Line {n} of the text that lies behind the picture." for n in range(9))
    done = read(pdf((layer, picture("", (820, 1160)))))
    assert methods(done) == ["text-layer"]
    assert done.text("output.txt") == layer + "\n"


def test_letters_without_meaning_are_recognised_instead(raw_pdf: Make) -> None:
    to_unicode = stream(
        b"begincmap 1 begincodespacerange <00> <ff> endcodespacerange"
        b" 1 beginbfrange <20> <7e> <e020> endbfrange endcmap"
    )
    font = FONT[:-2] + b"/ToUnicode 6 0 R>>"
    words = stream(b"BT /F 20 Tf 30 100 Td (The font of this page has a broken table) Tj ET")
    more = b"/Contents 4 0 R /Resources<</Font<</F 5 0 R>>>>"
    done = read(raw_pdf(CATALOG, ONE_PAGE, page(more), words, font, to_unicode))
    assert methods(done) == ["ocr"]
    assert done.text("output.txt") == "The font of this page has a broken table\n"


def test_what_was_filled_into_a_form_is_read(raw_pdf: Make) -> None:
    catalog = CATALOG[:-2] + b"/AcroForm<</Fields[6 0 R] /DR<</Font<</F 5 0 R>>>> /DA(/F 12 Tf)>>>>"
    words = stream(b"BT /F 12 Tf 30 150 Td (The name of the applicant is:) Tj ET")
    field = (
        b"<</Type/Annot /Subtype/Widget /FT/Tx /T(name) /V(Ines Calloway) /DA(/F 12 Tf 0 g)"
        b" /Rect[30 100 300 120] /F 4>>"
    )
    more = b"/Contents 4 0 R /Resources<</Font<</F 5 0 R>>>> /Annots[6 0 R]"
    done = read(raw_pdf(catalog, ONE_PAGE, page(more), words, FONT, field))
    assert done.text("output.txt") == "The name of the applicant is:\nInes Calloway\n"


def test_a_page_that_lies_on_its_side_is_read_upright(raw_pdf: Make) -> None:
    words = stream(b"BT /F 20 Tf 0 1 -1 0 200 30 Tm (Upright) Tj ET")
    more = b"/Contents 4 0 R /Resources<</Font<</F 5 0 R>>>> /Rotate 90"
    done = read(raw_pdf(CATALOG, ONE_PAGE, page(more), words, FONT))
    assert (methods(done), done.text("output.txt")) == (["ocr"], "Upright\n")


def test_a_pdf_may_begin_after_other_bytes(pdf: Make) -> None:
    done = read(b"\r\nmail gateway\r\n" + pdf("A page whose file begins with other bytes."))
    assert done.text("output.txt") == "A page whose file begins with other bytes.\n"


@pytest.mark.parametrize("dpi", [72, 150, 300, 600])
def test_small_print_needs_a_higher_resolution(pdf: Make, picture: Picture, dpi: int) -> None:
    done = read(pdf(picture("The fee is 4,711.20 a year", (2480, 3508), 52)), dpi=dpi)
    assert ("4,711.20" in done.text("output.txt")) is (dpi >= 150)


def test_an_encrypted_file_is_refused_for_good(raw_pdf: Make) -> None:
    lock = b"/V 1 /R 2 /P -4 /O<%b> /U<%b>" % (b"11" * 32, b"22" * 32)
    trailer = b"/ID[<00><00>] /Encrypt<</Filter/Standard %b>>" % lock
    document = raw_pdf(CATALOG, ONE_PAGE, page(), trailer=trailer)
    message = "the PDF is encrypted: remove its password"
    assert refusal(document) == ("FAILED_FINAL", "INPUT_INVALID", message)


def test_an_encryption_that_nobody_knows_is_refused_for_good(raw_pdf: Make) -> None:
    document = raw_pdf(CATALOG, ONE_PAGE, page(), trailer=b"/Encrypt<</Filter/Own /V 1>>")
    message = "the PDF is encrypted in a way that cannot be read"
    assert refusal(document) == ("FAILED_FINAL", "INPUT_INVALID", message)


def test_a_file_without_pages_is_refused_for_good(raw_pdf: Make) -> None:
    document = raw_pdf(CATALOG, b"<</Type/Pages /Kids[] /Count 0>>")
    message = "the PDF is damaged or has no pages"
    assert refusal(document) == ("FAILED_FINAL", "INPUT_INVALID", message)


def test_a_damaged_file_is_refused_for_good(pdf: Make, picture: Picture) -> None:
    whole = pdf(picture("Words", (820, 1160)))
    message = "the PDF is damaged or has no pages"
    for damaged in (whole[: len(whole) // 2], b"%PDF-1.7\n" + bytes(5000)):
        assert refusal(damaged) == ("FAILED_FINAL", "INPUT_INVALID", message)


def test_a_damaged_page_is_named(raw_pdf: Make) -> None:
    pages = b"<</Type/Pages /Kids[3 0 R 4 0 R] /Count 2>>"
    document = raw_pdf(CATALOG, pages, page(), b"(no page)")
    message = "page 2 of the PDF is damaged"
    assert refusal(document, pages=[2]) == ("FAILED_FINAL", "INPUT_INVALID", message)


def test_too_many_pages_are_refused_for_good(pdf: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCR_MAX_PAGES", "2")
    message = "the document has more than the 2 pages allowed"
    assert refusal(pdf(None, None, None)) == ("FAILED_FINAL", "INPUT_TOO_LARGE", message)


def test_a_page_as_large_as_a_house_is_refused_before_it_is_drawn(raw_pdf: Make) -> None:
    status, code, message = refusal(raw_pdf(CATALOG, ONE_PAGE, page(width=14_400_000)))
    assert (status, code) == ("FAILED_FINAL", "INPUT_TOO_LARGE")
    assert message.startswith("page 1 has 40000000 x 556 pixels; allowed are 70000000 in all.")


def test_a_page_that_is_too_long_for_tesseract_is_refused_for_good(raw_pdf: Make) -> None:
    status, code, message = refusal(raw_pdf(CATALOG, ONE_PAGE, page(width=14_400)))
    assert (status, code) == ("FAILED_FINAL", "INPUT_TOO_LARGE")
    assert "32767 a side" in message
