"""The text that is embedded: what the OCR step has read, or the job's input itself."""

from lucius_sdk import ErrorCode, NonRetryableError, StepContext

from embedding_service.payload import Payload

OCR = "OCR"
OCR_TEXT = "output.txt"

_BYTES_PER_CHARACTER = 4
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_text(ctx: StepContext[Payload], max_characters: int) -> str:
    """Without a byte order mark."""
    source = ctx.prior.find(OCR, OCR_TEXT) if OCR in ctx.prior else ctx.input
    text = decoded(source.read(limit=max_characters * _BYTES_PER_CHARACTER))
    if len(text) > max_characters:
        raise NonRetryableError(
            ErrorCode.INPUT_TOO_LARGE,
            f"the text has {len(text)} characters; {max_characters} are allowed",
        )
    return text


def decoded(content: bytes) -> str:
    if content.startswith(_UTF_16):
        raise _refused("it is UTF-16")
    if content.startswith(b"%PDF"):
        raise _refused("it is a PDF, which needs an OCR step first")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused(f"byte {error.start} is not UTF-8") from None
    if "\0" in text:
        raise _refused("it has NUL characters, as UTF-16 and binary files have")
    return text


def _refused(why: str) -> NonRetryableError:
    return NonRetryableError(
        ErrorCode.INPUT_INVALID, f"the input must be plain text in UTF-8; {why}"
    )
