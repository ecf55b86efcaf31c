"""Retry policies, states and their other names, redaction: values and pure functions."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.states import OutboxState
from lucius_contract.timeouts import DISPATCH_BACKOFF
from lucius_outbox import Delays, EqualJitter, InvalidSettings, RetryPolicy, Status
from lucius_outbox.redaction import MAX_ERROR, redacted
from lucius_outbox.states import LEDGER_NAME, LIVE, TERMINAL, TRANSITIONS, delivery_name

SECOND = timedelta(seconds=1)


@given(
    st.integers(1, 10_000),
    st.floats(0, 1),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
)
def test_equal_jitter_lies_in_the_upper_half_of_the_clamped_delay(
    attempts: int, chance: float, base: int, more: int
) -> None:
    policy = EqualJitter(timedelta(milliseconds=base), timedelta(milliseconds=base + more))
    exponential = base * 2 ** min(attempts - 1, 100)
    clamped = timedelta(milliseconds=min(exponential, base + more))
    tolerance = timedelta(microseconds=1)
    delay = policy.delay(attempts, chance)
    assert clamped / 2 - tolerance <= delay <= clamped + tolerance


def test_equal_jitter_as_the_specification_calculates_it() -> None:
    policy = EqualJitter(base=SECOND, maximum=300 * SECOND)
    assert [policy.delay(n, 1.0) / SECOND for n in (1, 2, 3, 9, 10)] == [1, 2, 4, 256, 300]
    assert [policy.delay(n, 0.0) / SECOND for n in (1, 2, 3, 9, 10)] == [0.5, 1, 2, 128, 150]


def test_a_list_of_delays_is_taken_in_turn_and_its_last_repeats() -> None:
    policy = RetryPolicy(max_attempts=6, backoff=Delays(DISPATCH_BACKOFF))
    waits = [policy.delay_after(attempts, 0.5) for attempts in range(1, 7)]
    minutes = [wait and wait.total_seconds() / 60 for wait in waits]
    assert minutes == [0.5, 2, 10, 10, 10, None]


def test_policies_are_values() -> None:
    assert RetryPolicy() == RetryPolicy()
    assert Delays([SECOND]) == Delays((SECOND,))
    assert len({RetryPolicy(), RetryPolicy(max_attempts=3), RetryPolicy(max_attempts=3)}) == 2
    assert RetryPolicy().max_reclaims == 20


@pytest.mark.parametrize(
    "make",
    [
        lambda: EqualJitter(timedelta(0)),
        lambda: EqualJitter(2 * SECOND, SECOND),
        lambda: Delays([]),
        lambda: Delays([-SECOND]),
        lambda: RetryPolicy(max_attempts=0),
        lambda: RetryPolicy(max_reclaims=-1),
    ],
)
def test_a_policy_that_cannot_work_is_refused(make: type[RetryPolicy]) -> None:
    with pytest.raises(InvalidSettings):
        make()


def test_every_status_is_live_or_terminal_and_dead_alone_comes_back() -> None:
    assert set(Status) == LIVE | TERMINAL
    assert not LIVE & TERMINAL
    assert {row.source for row in TRANSITIONS if row.source in TERMINAL} == {Status.DEAD}


def test_the_names_in_the_ledger_are_those_of_the_contract() -> None:
    assert set(LEDGER_NAME) == set(Status)
    assert set(LEDGER_NAME.values()) <= set(OutboxState)


def test_the_names_in_the_critical_state_machines() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    later = now + SECOND
    assert delivery_name(Status.PENDING, 0, now, now) == "pending"
    assert delivery_name(Status.PENDING, 0, later, now) == "pending"
    assert delivery_name(Status.PENDING, 1, later, now) == "retry_wait"
    assert delivery_name(Status.PENDING, 1, now, now) == "pending"
    assert delivery_name(Status.PROCESSING, 1, now, now) == "delivering"
    assert delivery_name(Status.DELIVERED, 1, now, now) == "delivered"
    assert delivery_name(Status.DEAD, 1, now, now) == "dead_letter"


@pytest.mark.parametrize(
    "text",
    [
        "Endpoint=sb://bus.example/;SharedAccessKeyName=root;SharedAccessKey=S3cr3t+/=;EntityPath=x",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=S3cr3t==;EndpointSuffix=x",
        "401 for https://account.blob.example/c/b?sv=2024&sig=S3cr3t%3D&se=2026",
        "Authorization: Bearer S3cr3t.abc",
        "header authorization=Basic S3cr3t==",
        'could not connect: {"password": "S3cr3t", "host": "db"}',
        "{'client_secret': 'S3cr3t'}",
        "postgresql://user:S3cr3t@db/x refused",
        "api_key=S3cr3t&q=1",
        "X-Api-Key: S3cr3t",
        "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJTM2NyM3QifQ.S3cr3t expired",
        "SharedAccessSignature sr=x&sig=S3cr3t&se=1&skn=root",
        "access_token=S3cr3t",
        "PASSWORD = S3cr3t",
    ],
)
def test_credentials_are_taken_out_of_errors(text: str) -> None:
    assert "S3cr3t" not in redacted(text)


@pytest.mark.parametrize(
    "text",
    [
        "ConnectionError: [Errno 111] Connect call failed ('127.0.0.1', 5672)",
        "the message is over 256 KiB (token bucket is full)",
        "KeyError: 'jobId'",
        "unknown topic global-bus-p3; known: global-bus-p0",
    ],
)
def test_ordinary_errors_stay_readable(text: str) -> None:
    assert redacted(text) == text


@given(st.text(max_size=3000))
def test_an_error_is_bounded_and_can_be_stored(text: str) -> None:
    kept = redacted(text)
    assert len(kept) <= MAX_ERROR
    assert "\0" not in kept
    kept.encode()


def test_a_credential_at_the_cut_is_not_shown_in_part() -> None:
    for start in range(MAX_ERROR - 40, MAX_ERROR):
        assert "S3cr3t" not in redacted("x" * start + " password=" + "S3cr3t" * 10)
