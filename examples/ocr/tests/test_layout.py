"""In which order the text of a picture comes."""

from collections.abc import Callable

import pytest
from lucius_sdk.testing import run_step
from PIL import Image

from ocr_service.execute import service

LEFT = [f"Left line {n} with a few words more" for n in range(20, 40)]
RIGHT = [f"Right line {n} with a few words more" for n in range(20, 40)]


@pytest.fixture(scope="session")
def two_columns(picture: Callable[..., Image.Image], saved: Callable[..., bytes]) -> bytes:
    page = picture("\n".join(LEFT), (1654, 1400), 34)
    page.paste(picture("\n".join(RIGHT), (800, 1400), 34), (800, 0))
    return saved(page, "PNG")


def lines_of(document: bytes) -> list[str]:
    text = run_step(service, {}, document).text("output.txt")
    return [line for line in text.splitlines() if line]


def test_rows_go_over_the_whole_page(two_columns: bytes) -> None:
    assert lines_of(two_columns) == [f"{a} {b}" for a, b in zip(LEFT, RIGHT, strict=True)]


def test_columns_come_one_after_the_other_if_the_operator_says_so(
    two_columns: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCR_LAYOUT", "columns")
    assert lines_of(two_columns) == LEFT + RIGHT
