"""What was read: the text of all pages in one file, and where in it each page is."""

from dataclasses import dataclass
from typing import BinaryIO, Literal

Method = Literal["text-layer", "ocr"]

PAGE_BREAK = "\f"
"""Between pages. It is white space to whoever splits the text, and never stands inside a page."""


@dataclass(frozen=True, slots=True)
class PageText:
    page: int
    method: Method
    text: str
    confidence: float | None = None
    """From 0 to 1; None where nothing was recognised."""


@dataclass(frozen=True, slots=True)
class PageEntry:
    """`start` and `end` count characters of the whole text, not bytes."""

    page: int
    method: Method
    confidence: float | None
    characters: int
    start: int
    end: int


class Transcript:
    """Writes the pages as they come, so that only one is in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._length = 0
        self.entries: list[PageEntry] = []

    @property
    def has_text(self) -> bool:
        return any(entry.characters for entry in self.entries)

    def add(self, page: PageText) -> None:
        if self.entries:
            self._write(PAGE_BREAK)
        start = self._length
        self._write(page.text)
        end = self._length
        self._write("\n")
        entry = PageEntry(page.page, page.method, page.confidence, len(page.text), start, end)
        self.entries.append(entry)

    def _write(self, text: str) -> None:
        self._file.write(text.encode())
        self._length += len(text)
