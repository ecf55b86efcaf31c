"""Why a document is not read. No further attempt would help."""

from lucius_sdk import ErrorCode, NonRetryableError

LANGUAGE_UNKNOWN = "OCR_LANGUAGE_UNKNOWN"
PAGE_UNKNOWN = "OCR_PAGE_UNKNOWN"
NO_TEXT = "OCR_NO_TEXT"


def invalid(message: str) -> NonRetryableError:
    return NonRetryableError(ErrorCode.INPUT_INVALID, message)


def too_large(message: str) -> NonRetryableError:
    return NonRetryableError(ErrorCode.INPUT_TOO_LARGE, message)
