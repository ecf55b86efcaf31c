"""How well the shipped documents are read."""

import io
from pathlib import Path

import pypdfium2
import pytest
from lucius_sdk.testing import StepRun, run_step

from ocr_service.execute import service


def read(path: Path) -> StepRun:
    done = run_step(service, {}, path.read_bytes())
    assert done.status == "SUCCEEDED", done.error
    return done


@pytest.fixture(scope="module")
def scan(documents: Path) -> StepRun:
    return read(documents / "invoice-scan.pdf")


def test_the_printed_invoice_is_read_to_the_letter(documents: Path) -> None:
    done = read(documents / "invoice.pdf")
    assert done.files["output.txt"] == (documents / "invoice.txt").read_bytes()


def test_of_a_scan_99_of_100_characters_are_right(documents: Path, scan: StepRun) -> None:
    truth = (documents / "invoice.txt").read_text(encoding="utf-8")
    assert accuracy(truth, scan.text("output.txt")) >= 0.99


@pytest.mark.parametrize("stated", [None, 72, 96, 300])
def test_a_picture_is_read_as_well_whatever_it_says_of_its_resolution(
    documents: Path, stated: int | None
) -> None:
    with pypdfium2.PdfDocument(documents / "invoice-scan.pdf") as pdf:
        page = pdf[0].render(scale=300 / 72, grayscale=True).to_pil()
        file = io.BytesIO()
        page.save(file, "PNG", compress_level=1, dpi=stated and (stated, stated))
    done = run_step(service, {}, file.getvalue())
    truth = (documents / "invoice.txt").read_text(encoding="utf-8").split("\f")[0]
    assert accuracy(truth, done.text("output.txt")) >= 0.99


def test_a_scan_is_told_as_one(scan: StepRun) -> None:
    pages = scan.json("pages.json")
    assert [page["method"] for page in pages] == ["ocr", "ocr"]
    assert all(page["confidence"] > 0.9 for page in pages)


def test_sentences_and_rows_of_a_scan_stay_whole(scan: StepRun) -> None:
    text = scan.text("output.txt")
    assert "The total amount due is EUR 4,711.20." in text
    assert "4 Printing of visitor guides 2,500 0.38 950.00" in text


def test_distances_are_counted_right() -> None:
    assert distance("kitten", "sitting") == 3
    assert distance("", "abc") == distance("abc", "") == 3
    assert distance("same", "same") == 0


def accuracy(truth: str, text: str) -> float:
    """However many blanks and line ends there are between words."""
    expected, found = (" ".join(each.split()) for each in (truth, text))
    errors = distance(expected, found)
    right = 1 - errors / len(expected)
    print(f"{right:.2%} right: {errors} of {len(expected)} characters to change")
    return right


def distance(first: str, second: str) -> int:
    """How many characters must be put in, taken out or replaced."""
    row = list(range(len(second) + 1))
    for i, a in enumerate(first, 1):
        above, row = row, [i]
        for j, b in enumerate(second, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]
