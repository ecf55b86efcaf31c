"""How large a document may be. What is larger is refused before it costs time or memory."""

from dataclasses import dataclass

from ocr_service.refusals import too_large

_LONGEST_SIDE = 32_767
"""Pixels; Tesseract takes no more."""


@dataclass(frozen=True, slots=True)
class Limits:
    max_bytes: int = 200 * 1024 * 1024
    max_pages: int = 2_000
    max_pixels: int = 70_000_000
    """Of one page; A3 at 600 dpi has no more."""

    def check_bytes(self, size: int) -> None:
        if size > self.max_bytes:
            raise too_large(f"the document has more than the {self.max_bytes} bytes allowed")

    def check_pages(self, count: int) -> None:
        if count > self.max_pages:
            raise too_large(f"the document has more than the {self.max_pages} pages allowed")

    def check_picture(self, page: int, width: int, height: int) -> None:
        """Ask before the page is rendered or decoded."""
        shown = f"page {page} has {width} x {height} pixels; allowed are"
        if width * height > self.max_pixels:
            raise too_large(f"{shown} {self.max_pixels} in all. {_ADVICE}")
        if max(width, height) > _LONGEST_SIDE:
            raise too_large(f"{shown} {_LONGEST_SIDE} a side. {_ADVICE}")


_ADVICE = "Pages of a PDF have fewer with a lower dpi"
