"""A record comes back from its document as it was, and shows no secret."""

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.idempotency_store import ClaimState, Record, RecordUnreadable, StoredResult
from lucius_sdk.idempotency_store.records import decode, encode
from tests.sdk.idempotency_store.steps import LEASE_ID, START, TOKEN, record

TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
MAYBE = st.none() | TEXT
INSTANTS = st.integers(0, 2**52).map(lambda after: START + timedelta(microseconds=after))
ADDRESSES = st.builds(ReplyAddress, st.integers(0, 15), TEXT, MAYBE, MAYBE, MAYBE, MAYBE)
RESULTS = st.builds(StoredResult, st.binary(max_size=60), ADDRESSES)


@st.composite
def records(draw: st.DrawFn) -> Record:
    state = draw(st.sampled_from(ClaimState))
    has_result = state in (ClaimState.COMPLETED, ClaimState.REPORTED)
    return Record(
        attempt_no=draw(st.integers(1, 99)),
        lease_id=draw(TEXT),
        state=state,
        owner=draw(MAYBE),
        epoch=draw(st.integers(1, 99)),
        takeovers=draw(st.integers(0, 99)),
        until=draw(INSTANTS),
        deadline=draw(INSTANTS),
        result=draw(RESULTS) if has_result else None,
        claim_no=draw(st.integers(0, 99)),
    )


@given(records())
def test_a_record_comes_back_as_it_was(stored: Record) -> None:
    assert decode(encode(stored)) == stored
    assert decode(encode(stored).encode()) == stored


def test_members_that_are_not_known_are_passed_over() -> None:
    document = json.loads(encode(record(ClaimState.COMPLETED)))
    document["colour"] = "green"
    document["result"]["weight"] = 3
    assert decode(json.dumps(document)) == record(ClaimState.COMPLETED)


@pytest.mark.parametrize("state", ClaimState)
def test_neither_lease_nor_token_is_shown(state: ClaimState) -> None:
    shown = repr(record(state))
    assert LEASE_ID.format(1) not in shown
    assert TOKEN not in shown


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("attempt_no", "1"),
        ("attempt_no", True),
        ("lease_id", None),
        ("state", "SUSPENDED"),
        ("owner", 7),
        ("epoch", 1.5),
        ("takeovers", None),
        ("until", "yesterday"),
        ("until", "2026-01-01T00:00:00"),
        ("deadline", 1767225600),
        ("result", None),
        ("result", {"body": "x"}),
        ("result", "x"),
    ],
)
def test_a_document_with_a_wrong_member_is_unreadable(member: str, value: object) -> None:
    document = json.loads(encode(record(ClaimState.COMPLETED)))
    document[member] = value
    with pytest.raises(RecordUnreadable):
        decode(json.dumps(document))


@pytest.mark.parametrize("member", json.loads(encode(record())))
def test_a_document_without_a_member_is_unreadable(member: str) -> None:
    document = json.loads(encode(record()))
    del document[member]
    with pytest.raises(RecordUnreadable):
        decode(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"x"', "17", b"\xff\xfe\xff"])
def test_what_is_no_document_is_unreadable(text: str | bytes) -> None:
    with pytest.raises(RecordUnreadable):
        decode(text)


def test_a_result_that_its_state_cannot_have_is_unreadable() -> None:
    document = json.loads(encode(record(ClaimState.COMPLETED)))
    document["state"] = "ACKED"
    with pytest.raises(RecordUnreadable):
        decode(json.dumps(document))


def test_what_is_unreadable_is_not_repeated_in_the_error() -> None:
    with pytest.raises(RecordUnreadable) as caught:
        decode(f'{{"token": "{TOKEN}", "until": ')
    assert TOKEN not in str(caught.value)
    assert caught.value.__cause__ is None
