"""A document of any kind that can be read."""

from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

from ocr_service.images import open_image
from ocr_service.kinds import HEAD, Kind, kind_of
from ocr_service.limits import Limits
from ocr_service.pdf import open_pdf
from ocr_service.raster import Raster
from ocr_service.refusals import invalid


class Document(Protocol):
    @property
    def page_count(self) -> int: ...

    def page(self, number: int) -> str | Raster:
        """Its text if it carries it, else its picture. Pages are counted from 1."""


def open_document(file: BinaryIO, dpi: int, limits: Limits) -> AbstractContextManager[Document]:
    """`dpi` is for pages that have to be rendered. The file must stay open as long as the
    document, and is closed by whoever opened it."""
    head = file.read(HEAD)
    file.seek(0)
    if not head:
        raise invalid("the document is empty")
    kind = kind_of(head)
    if kind is None:
        raise invalid("the document is of an unknown kind; PDF, PNG, JPEG and TIFF are read")
    if kind is Kind.PDF:
        return open_pdf(file, dpi, limits)
    return open_image(file, kind, limits)
