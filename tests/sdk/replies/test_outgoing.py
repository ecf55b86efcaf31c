"""Replies as they leave."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import REPLY_LIMIT, Reply, parse_reply
from lucius_sdk.replies.outgoing import outgoing, outgoing_result
from tests.sdk.replies.samples import LEASE, TRACE, ack, heartbeat, over_http, result


@pytest.mark.parametrize("message", [ack(), heartbeat(), result()])
def test_a_reply_leaves_as_bytes_that_the_orchestrator_reads_as_the_same(message: Reply) -> None:
    assert parse_reply(outgoing(message).body) == message


def test_the_bus_is_told_what_a_reply_is_of() -> None:
    reply = outgoing(ack())
    assert reply.message_id == f"job_1.step_01.2.{LEASE}.ACK"
    assert reply.properties == {
        "type": "ACK",
        "jobId": "job_1",
        "traceparent": TRACE,
    }


def test_a_reply_without_a_trace_has_no_property_of_it() -> None:
    reply = outgoing(ack(traceparent=None))
    assert reply.traceparent is None
    assert "traceparent" not in reply.properties


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(job_id=names, step_id=names, tenant_id=names, trace=st.none() | names)
def test_a_stored_result_leaves_exactly_as_it_did_the_first_time(
    job_id: str, step_id: str, tenant_id: str, trace: str | None
) -> None:
    message = result(job_id=job_id, step_id=step_id, tenant_id=tenant_id, traceparent=trace)
    first = outgoing(message)
    assert outgoing_result(first.body) == first


def test_members_that_nobody_knows_stay_in_a_stored_result() -> None:
    body = json.dumps(result().to_json() | {"later": [1, 2]}).encode()
    assert outgoing_result(body).body is body


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "ACK"},
        {"jobId": None},
        {"stepId": ""},
        {"lease_id": 7},
        {"attempt_no": "2"},
        {"attempt_no": True},
    ],
)
def test_what_is_no_stored_result_is_not_sent(changes: dict[str, Any]) -> None:
    body = json.dumps(result().to_json() | changes).encode()
    with pytest.raises(ContractError) as caught:
        outgoing_result(body)
    assert caught.value.code is ErrorCode.ENVELOPE_INVALID


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff"])
def test_bytes_that_are_no_object_are_not_sent(body: bytes) -> None:
    with pytest.raises(ContractError):
        outgoing_result(body)


def sized(size: int) -> Reply:
    padding = size - len(result(padding="").to_bytes())
    return result(padding="x" * padding)


def test_the_largest_reply_may_leave_and_one_byte_more_may_not() -> None:
    assert len(outgoing(sized(REPLY_LIMIT)).body) == REPLY_LIMIT
    with pytest.raises(ContractError) as caught:
        outgoing(sized(REPLY_LIMIT + 1))
    assert caught.value.code is ErrorCode.TOO_LARGE
    with pytest.raises(ContractError):
        outgoing_result(sized(REPLY_LIMIT + 1).to_bytes())


def test_each_type_has_an_address_of_its_own() -> None:
    address = over_http("http://x")
    urls = [outgoing(message).url_in(address) for message in (ack(), heartbeat(), result())]
    assert urls == [f"http://x/v1/callbacks/{name}" for name in ("ack", "heartbeat", "result")]


def test_what_is_shown_of_a_reply_hides_the_lease() -> None:
    shown = repr(outgoing(result()))
    assert "job_1" in shown
    assert LEASE not in shown
