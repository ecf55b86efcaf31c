"""What a RESULT says about an exception that left a handler."""

import pickle
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from docs.generator import ROOT
from lucius_contract.errors import ERRORS, ErrorCode, WrittenBy
from lucius_contract.messages import FailureClass, ResultStatus
from lucius_sdk.error_model import (
    MESSAGE_LIMIT,
    Failure,
    NonRetryableError,
    RetryableError,
    StepCancelled,
    StepError,
    StopReason,
    WorkStopped,
    check_code,
    classify,
    code_prefix,
    presentable,
)

STANDARD = sorted(code for code, info in ERRORS.items() if WrittenBy.SERVICE in info.written_by)
OTHERS = sorted(set(ERRORS) - set(STANDARD))


def test_a_retryable_error_says_failed_retry() -> None:
    failure = classify(RetryableError(ErrorCode.RATE_LIMITED, "the model asks to wait"), "ocr")
    assert failure == Failure(
        ResultStatus.FAILED_RETRY,
        FailureClass.RETRYABLE,
        "RATE_LIMITED",
        "the model asks to wait",
    )


def test_a_non_retryable_error_says_failed_final() -> None:
    failure = classify(NonRetryableError("OCR_NO_TEXT", "there is no text"), "ocr")
    assert failure == Failure(
        ResultStatus.FAILED_FINAL, FailureClass.NON_RETRYABLE, "OCR_NO_TEXT", "there is no text"
    )


def test_without_a_code_the_code_fits_the_class() -> None:
    assert classify(RetryableError(), "ocr").code == "DEPENDENCY_UNAVAILABLE"
    assert classify(NonRetryableError(), "ocr").code == "INTERNAL"


def test_cancelled_work_is_final_with_the_code_cancelled() -> None:
    failure = classify(StepCancelled(), "ocr")
    assert (failure.status, failure.code) == (ResultStatus.FAILED_FINAL, "CANCELLED")


@pytest.mark.parametrize("error", [RetryableError("page 7 is torn"), RetryableError("LANG_X")])
def test_a_code_that_may_not_be_written_costs_the_code_and_not_the_retry(error: StepError) -> None:
    failure = classify(error, "ocr")
    assert (failure.status, failure.code) == (ResultStatus.FAILED_RETRY, "DEPENDENCY_UNAVAILABLE")
    assert error.code in failure.message


@pytest.mark.parametrize(
    "error",
    [
        RetryableError("OCR_X", "why"),
        NonRetryableError("OCR_X", "why"),
        StepCancelled("why"),
        WorkStopped(StopReason.LEASE_LOST),
    ],
)
def test_errors_survive_the_way_out_of_a_process_pool(error: StepError) -> None:
    copy = pickle.loads(pickle.dumps(error))  # noqa: S301
    assert (type(copy), vars(copy), str(copy)) == (type(error), vars(error), str(error))


@pytest.mark.parametrize("code", STANDARD)
def test_standard_codes_of_services_are_for_all_of_them(code: str) -> None:
    check_code(code, "ocr")


@pytest.mark.parametrize("code", OTHERS)
def test_codes_of_the_orchestrator_are_not_for_services(code: str) -> None:
    with pytest.raises(ValueError, match="own ones begin OCR_"):
        check_code(code, "ocr")


@pytest.mark.parametrize("code", ["", "ocr_x", "OCR X", "OCR_" + "X" * 200, "the page is torn"])
def test_a_code_is_made_of_capitals(code: str) -> None:
    with pytest.raises(ValueError, match="is no code"):
        check_code(code, "ocr")


def test_own_codes_begin_with_the_name_of_the_service() -> None:
    assert code_prefix("page-split") == "PAGE_SPLIT_"
    check_code("PAGE_SPLIT_NOTHING_TO_SPLIT", "page-split")
    with pytest.raises(ValueError, match="own ones begin PAGE_SPLIT_"):
        check_code("PAGE_TORN", "page-split")


def test_in_a_group_the_one_that_cannot_be_retried_decides() -> None:
    mixed = BaseExceptionGroup(
        "pages", [ConnectionResetError(), ExceptionGroup("inner", [OSError(5, "io"), KeyError()])]
    )
    assert classify(mixed, "ocr").code == "INTERNAL"


def test_a_group_of_passing_faults_is_retried() -> None:
    faults = ExceptionGroup("pages", [RetryableError(ErrorCode.TIMEOUT, "slow"), OSError(5, "io")])
    assert classify(faults, "ocr")[:3] == (
        ResultStatus.FAILED_RETRY,
        FailureClass.RETRYABLE,
        "TIMEOUT",
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_what_would_end_a_program_is_a_defect_of_the_handler(error: BaseException) -> None:
    assert classify(error, "ocr").code == "INTERNAL"


def test_of_a_failed_validation_places_are_told_and_values_are_not() -> None:
    class Page(BaseModel):
        number: int

    with pytest.raises(ValidationError) as caught:
        Page.model_validate({"number": "John Smith"})
    failure = classify(caught.value, "ocr")
    assert failure.code == "INPUT_INVALID"
    assert "/number" in failure.message
    assert "John" not in failure.message


def test_credentials_do_not_leave_with_a_message() -> None:
    error = ValueError("cannot read https://u:hunter2@host/a?sig=Zm9vYmFyZm9vYmFy")
    message = classify(error, "ocr").message
    assert message.startswith("ValueError: ")
    assert "hunter2" not in message
    assert "Zm9v" not in message


def test_an_error_that_cannot_be_printed_is_named() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert classify(Mute(), "ocr").message == "Mute"


@given(st.text(st.characters(exclude_categories=()), max_size=500))
@example("a name \ud800, a byte \0, a colour \x1b[31m and more " * MESSAGE_LIMIT)
def test_every_message_can_be_written_and_stored(text: str) -> None:
    shown = presentable(text)
    assert len(shown) <= MESSAGE_LIMIT
    assert {c for c in shown if unicodedata.category(c) in {"Cc", "Cs"}} <= {"\t", "\n"}
    shown.encode()


def test_a_message_is_kept_up_to_the_limit_and_a_longer_one_ends_there_with_an_ellipsis() -> None:
    words = "word " * MESSAGE_LIMIT
    assert presentable(words[:MESSAGE_LIMIT]) == words[:MESSAGE_LIMIT]
    assert presentable(words) == words[: MESSAGE_LIMIT - 1] + "\N{HORIZONTAL ELLIPSIS}"


def test_the_documented_limit_and_codes_are_those_in_force() -> None:
    how_to = (ROOT / "docs/how-to/write-a-service.md").read_text(encoding="utf-8")
    assert f"cut at {MESSAGE_LIMIT:,} characters" in how_to
    page = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")
    for code, service in re.findall(r"`(\w+)` of `([\w-]+)`", page):
        check_code(code, service)
    assert "`OCR_NO_TEXT` of `ocr`" in page
