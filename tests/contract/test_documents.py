"""What all documents share: limits, instants, secrets, errors that name the field."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from lucius_contract.canonical import canonical_json, read_json
from lucius_contract.envelope import PAYLOAD_LIMIT, parse_envelope
from lucius_contract.errors import ERRORS, ContractError, ErrorCode, Problem
from lucius_contract.messages import (
    DIRECTIVE_LIMIT,
    REPLY_LIMIT,
    Ack,
    Heartbeat,
    Result,
    bus_message_id,
    parse_directive,
    parse_reply,
)
from lucius_contract.refs import RefPolicy
from lucius_contract.routing import Mode
from tests.contract.test_vectors import vectors

NOON = datetime(2026, 1, 27, 12, 0, tzinfo=UTC)


def ack(**members: Any) -> Ack:
    fields = {"job_id": "job_1", "step_id": "step_01", "tenant_id": "acme"}
    return Ack(**(fields | {"attempt_no": 1, "lease_id": "l", "timestamp": NOON} | members))


def reply_with(capacity: Any, **members: Any) -> Ack | Heartbeat:
    written = ack().to_json() | {"capacity": capacity} | members
    read = parse_reply(json.dumps(written).encode())
    assert not isinstance(read, Result)
    return read


def envelope(**members: Any) -> bytes:
    request = {
        "tenant_id": "acme",
        "request_type": "OCR",
        "input_ref": {"uri": "az://inbox/a.pdf"},
        "output_ref": {"uri": "az://outbox/a.json"},
        "payload": {},
        "schema_version": "1",
    }
    return json.dumps(request | members).encode()


def test_wire_names_are_written_and_python_names_are_not_read() -> None:
    written = json.loads(ack().to_bytes())
    assert written["jobId"] == "job_1"
    assert "job_id" not in written


def test_instants_are_kept_and_written_in_utc() -> None:
    in_berlin = NOON.astimezone(timezone(timedelta(hours=1)))
    assert ack(timestamp=in_berlin).timestamp.tzinfo is UTC
    assert ack(timestamp=in_berlin).to_json()["timestamp"] == "2026-01-27T12:00:00Z"


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_time_that_utc_cannot_say_is_refused(time: str) -> None:
    reply = {"type": "ACK", "jobId": "job_1", "stepId": "step_01", "tenant_id": "acme"}
    rest = {"attempt_no": 1, "lease_id": "l", "status": "ACKED", "timestamp": time}
    with pytest.raises(ContractError) as refused:
        parse_reply(json.dumps(reply | rest).encode())
    assert [problem.pointer for problem in refused.value.problems] == ["/timestamp"]


def test_the_callback_token_is_not_in_the_repr() -> None:
    case = next(p.values[0] for p in vectors("messages", "valid") if "HTTP" in str(p.id))
    secret = "hunter2"  # noqa: S105
    directive = parse_directive(json.dumps({**case["document"], "callback_token": secret}).encode())
    assert directive.callback_token == secret
    assert secret not in repr(directive)


def test_the_capacity_of_an_instance_is_read_with_members_unknown_here() -> None:
    stated = {"instance_id": "i" * 128, "slots": 100_000, "zone": "north"}
    capacity = reply_with(stated).capacity
    assert capacity is not None
    assert (capacity.instance_id, capacity.slots) == ("i" * 128, 100_000)
    assert reply_with(stated).to_json()["capacity"] == stated


@pytest.mark.parametrize(
    "stated",
    [
        8,
        "8",
        [],
        {},
        None,
        {"slots": 8},
        {"instance_id": "one"},
        {"instance_id": "", "slots": 8},
        {"instance_id": "i" * 129, "slots": 8},
        {"instance_id": 7, "slots": 8},
        {"instance_id": "one", "slots": 0},
        {"instance_id": "one", "slots": 100_001},
        {"instance_id": "one", "slots": "8"},
        {"instance_id": "one", "slots": 8.0},
        {"instance_id": "one", "slots": True},
    ],
)
@pytest.mark.parametrize("type", ["ACK", "HEARTBEAT"])
def test_a_capacity_that_cannot_be_read_is_ignored_and_the_reply_is_not(
    type: str, stated: Any
) -> None:
    read = reply_with(stated, type=type)
    assert (read.type, read.job_id, read.capacity) == (type, "job_1", None)
    assert "capacity" not in read.to_json()


def test_a_message_id_is_the_same_for_the_same_message() -> None:
    assert bus_message_id(ack()) == "job_1.step_01.1.l.ACK"


@pytest.mark.parametrize(
    ("parse", "limit"), [(parse_reply, REPLY_LIMIT), (parse_directive, DIRECTIVE_LIMIT)]
)
def test_a_message_over_its_limit_is_too_large(parse: Any, limit: int) -> None:
    with pytest.raises(ContractError) as refused:
        parse(b"{" + b" " * limit)
    assert refused.value.code is ErrorCode.TOO_LARGE


def test_limits_count_bytes_not_characters() -> None:
    text = json.dumps({"note": "ü" * (REPLY_LIMIT // 2)}, ensure_ascii=False)
    assert len(text) < REPLY_LIMIT
    with pytest.raises(ContractError) as refused:
        parse_reply(text.encode())
    assert refused.value.code is ErrorCode.TOO_LARGE


def test_a_payload_over_its_limit_is_too_large() -> None:
    with pytest.raises(ContractError) as refused:
        parse_envelope(envelope(payload={"text": "x" * PAYLOAD_LIMIT}), RefPolicy())
    assert refused.value.code is ErrorCode.TOO_LARGE
    assert refused.value.problems[0].pointer == "/payload"


@pytest.mark.parametrize(
    ("spelled", "mode"), [(None, None), ("SAFE", Mode.DEFAULT), ("BURST", Mode.BURST)]
)
def test_the_requested_mode(spelled: str | None, mode: Mode | None) -> None:
    assert parse_envelope(envelope(mode=spelled), RefPolicy()).requested_mode is mode


def test_a_deep_bomb_is_refused() -> None:
    with pytest.raises(ContractError, match="recursion limit"):
        read_json(b"[" * 100_000)


def test_text_that_is_no_unicode_has_no_canonical_form() -> None:
    with pytest.raises(ContractError, match="no canonical form"):
        canonical_json({"\ud800": 1})


def test_an_error_reads_well() -> None:
    error = ContractError(
        ErrorCode.ENVELOPE_INVALID, "not a valid ACK", [Problem("/a", "b"), Problem("", "c")]
    )
    assert str(error) == "ENVELOPE_INVALID: not a valid ACK\n  /a: b\n  (document): c"


class TestErrorTable:
    def test_every_code_has_its_row(self) -> None:
        assert set(ERRORS) == set(ErrorCode)

    def test_codes_that_ask_to_come_back_are_retryable(self) -> None:
        for info in ERRORS.values():
            if info.http_status is not None:
                assert info.retryable == (info.http_status in (429, 503)), info.code
