"""Messages that are directives, and messages that are not."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator

from lucius_contract.messages import DIRECTIVE_LIMIT
from lucius_sdk.directive_model import (
    DirectiveUnreadable,
    RefusalReason,
    StepTypeNotOwned,
    read_directive,
    read_payload,
)
from lucius_sdk.error_model import MESSAGE_LIMIT, NonRetryableError
from tests.sdk.service.samples import LEASE, directive, directive_body


class OcrPayload(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    dpi: int = Field(default=300, ge=72, le=600)
    pages: tuple[int, ...] = ()
    since: datetime | None = None


def read(**changes: Any) -> object:
    return read_directive(json.dumps(directive_body(**changes)).encode())


def refused(body: bytes) -> DirectiveUnreadable:
    with pytest.raises(DirectiveUnreadable) as caught:
        read_directive(body)
    return caught.value


def test_a_directive_is_read() -> None:
    assert read() == directive()


def test_unknown_members_are_tolerated() -> None:
    assert read(priority={"high": True}) == directive(priority={"high": True})


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"\xff", b"null", b"{}", b"[" * 100_000, b'{"type": "RESULT"}'],
    ids=["nothing", "half", "list", "not-utf8", "null", "empty", "deep", "other-type"],
)
def test_what_is_no_directive_is_refused(body: bytes) -> None:
    assert refused(body).reason is RefusalReason.DIRECTIVE_INVALID


@pytest.mark.parametrize("name", ["jobId", "lease_id", "step_type", "lease_expires_at", "payload"])
def test_a_missing_member_is_named(name: str) -> None:
    error = refused(json.dumps(directive_body(**{name: ...})).encode())
    assert f"/{name} " in error.description


def test_another_major_version_is_not_read() -> None:
    error = refused(b'{"schema_version": "2", "unknown": "in every way"}')
    assert error.reason is RefusalReason.SCHEMA_VERSION_UNSUPPORTED


def test_a_directive_over_the_limit_is_not_read() -> None:
    error = refused(b" " * DIRECTIVE_LIMIT + b"{}")
    assert error.reason is RefusalReason.DIRECTIVE_TOO_LARGE


def test_a_refusal_shows_no_secret_of_the_directive() -> None:
    body = directive_body(attempt_no=0) | {"callback_token": "very-secret"}
    error = refused(json.dumps(body).encode())
    assert "very-secret" not in str(error)
    assert LEASE not in str(error)


@given(st.binary() | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_no_message_is_read_with_another_exception(body: bytes | str) -> None:
    error = refused(body if isinstance(body, bytes) else body.encode())
    assert len(error.description) <= MESSAGE_LIMIT


def test_a_step_type_of_others_names_what_is_owned() -> None:
    error = StepTypeNotOwned("SIS", {"OCR", "EMBEDDING"})
    assert error.reason is RefusalReason.STEP_TYPE_NOT_OWNED
    assert error.description == "a directive for SIS; this service runs EMBEDDING, OCR"


def test_a_payload_is_read_as_json_even_by_a_strict_model() -> None:
    asked = directive(payload={"pages": [1, 2], "since": "2026-01-01T00:00:00Z"})
    assert read_payload(OcrPayload, asked) == OcrPayload(
        pages=(1, 2), since=datetime(2026, 1, 1, tzinfo=UTC)
    )


def test_without_a_model_the_payload_is_as_it_came() -> None:
    assert read_payload(None, directive(payload={"any": [1]})) == {"any": [1]}


def test_an_invalid_payload_says_where_and_not_what() -> None:
    with pytest.raises(NonRetryableError) as caught:
        read_payload(OcrPayload, directive(payload={"dpi": 6000, "a/b": "John Smith"}))
    assert caught.value.code == "PAYLOAD_INVALID"
    assert "/payload/dpi " in caught.value.message
    assert "/payload/a~1b " in caught.value.message
    assert "John" not in caught.value.message


def test_a_model_that_is_broken_itself_fails_the_step_and_nothing_else() -> None:
    class Broken(BaseModel):
        dpi: int

        @field_validator("dpi")
        @classmethod
        def _known(cls, dpi: int) -> int:
            return {72: dpi}[dpi]

    with pytest.raises(NonRetryableError, match=r"INTERNAL: .*KeyError: 300"):
        read_payload(Broken, directive())
