"""What responses mean."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_sdk.replies.answers import (
    Answer,
    ReplyError,
    ReplyUnauthorised,
    ReplyUnavailable,
    Verdict,
)
from lucius_sdk.replies.http_answers import Response, answer_of, seconds_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORIGIN = "http://orchestrator"


def answered(status: int, value: Any = None, retry_after: str | None = None) -> Answer:
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return answer_of(Response(ORIGIN, status, body, retry_after), NOW)


def test_an_applied_reply_brings_the_lease_and_whether_to_cancel() -> None:
    value = {
        "verdict": "APPLIED",
        "lease_expires_at": "2026-01-01T01:15:00.5+01:00",
        "cancel_requested": True,
        "unknown": {},
    }
    lease = NOW + timedelta(minutes=15, milliseconds=500)
    assert answered(200, value) == Answer(Verdict.APPLIED, lease, cancel_requested=True)


@pytest.mark.parametrize(
    ("status", "value", "verdict"),
    [
        (200, {"verdict": "DUPLICATE"}, Verdict.DUPLICATE),
        (202, {"verdict": "of a later version"}, Verdict.APPLIED),
        (204, b"", Verdict.APPLIED),
        (200, b"<html>", Verdict.APPLIED),
        (200, [], Verdict.APPLIED),
        (200, {"verdict": ["APPLIED"]}, Verdict.APPLIED),
        (409, {"code": "STALE_ATTEMPT"}, Verdict.STALE),
        (409, {"code": "RESULT_CONFLICT"}, Verdict.CONFLICT),
        (409, {"code": "STATE_CONFLICT"}, Verdict.REFUSED),
        (409, b"", Verdict.REFUSED),
        (400, {"code": "ENVELOPE_INVALID"}, Verdict.REFUSED),
        (404, {"code": "STALE_ATTEMPT"}, Verdict.REFUSED),
        (413, {"code": "TOO_LARGE"}, Verdict.REFUSED),
        (422, None, Verdict.REFUSED),
    ],
)
def test_final_answers(status: int, value: Any, verdict: Verdict) -> None:
    assert answered(status, value).verdict is verdict


@pytest.mark.parametrize("status", [401, 403])
def test_a_token_that_is_not_accepted(status: int) -> None:
    with pytest.raises(ReplyUnauthorised, match=f"{ORIGIN} answered {status}"):
        answered(status)


@pytest.mark.parametrize("status", [301, 302, 307, 405, 408, 410, 425, 429, 500, 502, 503, 504])
def test_whatever_else_is_tried_again(status: int) -> None:
    with pytest.raises(ReplyUnavailable, match=f"{ORIGIN} answered {status}"):
        answered(status, {"verdict": "APPLIED"})


def test_a_refusal_says_why() -> None:
    value = {
        "code": "ENVELOPE_INVALID",
        "detail": "not a valid RESULT",
        "errors": [{"pointer": "/timestamp", "message": "must be a time"}, "odd"],
    }
    detail = answered(400, value).detail
    assert detail == (
        f"{ORIGIN} answered 400: ENVELOPE_INVALID: not a valid RESULT: /timestamp must be a time"
    )


def test_a_long_refusal_is_cut() -> None:
    assert len(answered(400, {"detail": "x" * 10_000}).detail) == 500


@pytest.mark.parametrize(
    "value", [None, 7, "soon", "2026-01-01T00:00:00", "0001-01-01T00:00:00+23:59", ["x"]]
)
def test_a_lease_that_cannot_be_read_was_not_given(value: Any) -> None:
    assert answered(200, {"lease_expires_at": value}).lease_expires_at is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        (None, None),
        ("7", 7.0),
        (" 0 ", 0.0),
        ("Thu, 01 Jan 2026 00:00:30 GMT", 30.0),
        ("Wed, 31 Dec 2025 23:00:00 GMT", 0.0),
        ("-5", None),
        ("soon", None),
        ("", None),
        ("²", None),
    ],
)
def test_how_long_to_stay_away(text: str | None, seconds: float | None) -> None:
    assert seconds_of(text, NOW) == seconds


def test_a_busy_server_says_when_to_come_again() -> None:
    with pytest.raises(ReplyUnavailable) as caught:
        answered(429, {}, "12")
    assert caught.value.retry_after == 12


@given(st.integers(100, 599), st.binary(max_size=50), st.none() | st.text(max_size=30))
def test_every_response_means_something(status: int, body: bytes, retry_after: str | None) -> None:
    try:
        answer = answer_of(Response(ORIGIN, status, body, retry_after), NOW)
    except ReplyError:
        assert status not in {400, 404, 409, 413, 422}
        assert not 200 <= status < 300
    else:
        assert (answer.detail == "") == (status < 300)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


@given(
    st.sampled_from([200, 400, 409]),
    st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ("verdict", "code", "detail", "errors", "lease_expires_at"), json_values
        ),
    ),
)
def test_members_of_any_kind_are_survived(status: int, value: dict[str, Any]) -> None:
    assert answered(status, value).verdict in Verdict
