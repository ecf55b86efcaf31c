"""The parts of the bus on Service Bus that need no connection."""

import ssl
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import certifi
import pytest
from azure.servicebus import ServiceBusMessage
from azure.servicebus import exceptions as azure_errors
from hypothesis import given
from hypothesis import strategies as st

from lucius_bus.port import (
    BusMessage,
    BusUnavailable,
    Delivery,
    LockLost,
    Misused,
    PublishRefused,
)
from lucius_bus.servicebus import ServiceBusSettings
from lucius_bus.servicebus.client import client_options
from lucius_bus.servicebus.errors import Meaning, failure_of, verdict_of
from lucius_bus.servicebus.messages import incoming, outgoing
from lucius_bus.servicebus.pacing import Backoff, Quiet
from lucius_bus.servicebus.reaching import Endpoint
from lucius_bus.servicebus.requests import Requests
from tests.bus.backends import Clock, message

NOW = datetime(2025, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (azure_errors.MessageAlreadySettled(), Meaning.LOST),
        (azure_errors.MessageLockLostError(), Meaning.LOST),
        (azure_errors.MessageNotFoundError(), Meaning.LOST),
        (azure_errors.ServiceBusServerBusyError(), Meaning.BUSY),
        (azure_errors.ServiceBusQuotaExceededError(), Meaning.AWAY),
        (azure_errors.MessageSizeExceededError(), Meaning.REFUSED),
        (azure_errors.MessagingEntityNotFoundError(), Meaning.CLOSED_OFF),
        (azure_errors.ServiceBusAuthorizationError(), Meaning.CLOSED_OFF),
        (azure_errors.ServiceBusAuthenticationError(), Meaning.AWAY),
        (azure_errors.MessagingEntityDisabledError(), Meaning.AWAY),
        (azure_errors.ServiceBusConnectionError(), Meaning.AWAY),
        (azure_errors.OperationTimeoutError(), Meaning.AWAY),
        (azure_errors.ServiceBusError("no", condition="amqp:not-allowed"), Meaning.REFUSED),
        (azure_errors.ServiceBusError("no", condition=b"amqp:not-allowed"), Meaning.REFUSED),
        (azure_errors.ServiceBusError("no", condition="amqp:internal-error"), Meaning.AWAY),
        (azure_errors.ServiceBusError("no"), Meaning.AWAY),
        (ValueError("the handler is shut down"), Meaning.AWAY),
        (TimeoutError(), Meaning.AWAY),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else value.name,
)
def test_every_error_of_the_client_has_a_meaning(error: Exception, meaning: Meaning) -> None:
    assert verdict_of(error).meaning is meaning
    assert failure_of(error).meaning is meaning


def test_every_error_that_the_client_may_raise_is_in_the_table() -> None:
    found = vars(azure_errors).values()
    kinds = {kind for kind in found if isinstance(kind, type) and issubclass(kind, Exception)}
    unused = {"AutoLockRenewFailed", "AutoLockRenewTimeout", "MessagingEntityAlreadyExistsError"}
    known = {kind for kind in kinds if verdict_of(kind.__new__(kind)).meaning is not Meaning.AWAY}
    away = {kind.__name__ for kind in kinds - known} - unused
    assert away == {
        "AzureError",
        "MessagingEntityDisabledError",
        "OperationTimeoutError",
        "ServiceBusAuthenticationError",
        "ServiceBusCommunicationError",
        "ServiceBusConnectionError",
        "ServiceBusError",
        "ServiceBusQuotaExceededError",
    }


@pytest.mark.parametrize(
    ("error", "published", "received"),
    [
        (azure_errors.ServiceBusConnectionError(), BusUnavailable, BusUnavailable),
        (azure_errors.ServiceBusServerBusyError(), BusUnavailable, BusUnavailable),
        (azure_errors.MessagingEntityNotFoundError(), PublishRefused, Misused),
        (azure_errors.ServiceBusError("no", condition="amqp:not-allowed"), PublishRefused, Misused),
        (azure_errors.MessageLockLostError(), LockLost, LockLost),
    ],
)
def test_a_meaning_is_an_error_of_the_port(
    error: Exception, published: type[Exception], received: type[Exception]
) -> None:
    failure = failure_of(error)
    assert type(failure.as_error("topic lane", PublishRefused)) is published
    assert type(failure.as_error("subscription ocr of lane", Misused)) is received


@pytest.mark.parametrize(
    ("left", "ttl"),
    [
        (timedelta(milliseconds=1500), 1500),
        (timedelta(microseconds=1999), 1),
        (timedelta(0), 1),
        (timedelta(seconds=-5), 1),
        (timedelta(days=365), 2**32 - 2),
    ],
)
def test_a_message_lives_for_what_is_left_to_the_millisecond(left: timedelta, ttl: int) -> None:
    made = outgoing(message(expires_at=NOW + left), NOW)
    header = made.raw_amqp_message.header
    assert header is not None
    assert header.time_to_live == ttl


def test_a_message_without_an_end_has_no_time_to_live() -> None:
    assert outgoing(message(), NOW).time_to_live is None


class Received(ServiceBusMessage):
    """As the client gives it, in what is read of it."""

    expires_at_utc = None


def received(body: str | bytes = b"", **fields: Any) -> BusMessage:
    return incoming(Received(body, **fields))  # type: ignore[arg-type]


def test_names_and_texts_of_properties_are_decoded() -> None:
    given = {b"service": b"ocr", b"lane": 3, "na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve": "x"}
    found = received(application_properties=given).properties
    assert found == {
        "service": "ocr",
        "lane": 3,
        "na\N{LATIN SMALL LETTER I WITH DIAERESIS}ve": "x",
    }


def test_properties_of_other_senders_are_shown_as_text() -> None:
    given = {b"id": UUID(int=1), b"share": 0.5, b"raw": b"\xff"}
    found = received(application_properties=given).properties
    assert found == {"id": str(UUID(int=1)), "share": "0.5", "raw": "\N{REPLACEMENT CHARACTER}"}


@pytest.mark.parametrize(("body", "seen"), [(b"{}", b"{}"), ("{}", b"{}"), (b"", b"")])
def test_a_body_is_bytes(body: str | bytes, seen: bytes) -> None:
    assert received(body).body == seen


def test_pauses_double_up_to_the_longest_and_begin_anew() -> None:
    backoff = Backoff(SECOND, 4 * SECOND, lambda: 1.0)
    pauses = []
    for _ in range(4):
        backoff.fail(100.0)
        pauses.append(backoff.left(100.0))
    assert pauses == [SECOND, 2 * SECOND, 4 * SECOND, 4 * SECOND]
    assert backoff.left(103.0) == SECOND
    backoff.succeed()
    assert backoff.left(100.0) == timedelta(0)


@given(st.floats(0, 1), st.integers(1, 200))
def test_half_of_a_pause_is_by_chance(chance: float, failures: int) -> None:
    backoff = Backoff(SECOND, 60 * SECOND, lambda: chance)
    for _ in range(failures):
        backoff.fail(0.0)
    whole = min(2.0 ** (failures - 1), 60)
    assert whole / 2 <= backoff.left(0.0).total_seconds() <= whole


def test_a_topic_is_left_alone_for_a_time_and_no_longer() -> None:
    clock = Clock()
    quiet = Quiet("lane", 10 * SECOND, clock)
    quiet.check()
    quiet.begin()
    clock.advance(seconds=9)
    with pytest.raises(BusUnavailable, match="lane"):
        quiet.check()
    clock.advance(seconds=1)
    quiet.check()


def test_a_clock_that_is_set_back_does_not_prolong_the_quiet() -> None:
    clock = Clock()
    quiet = Quiet("lane", 10 * SECOND, clock)
    quiet.begin()
    clock.advance(hours=-1)
    quiet.check()


def arrived(clock: Clock, *numbers: int) -> list[Delivery]:
    until = clock.now + 60 * SECOND
    return [Delivery(message(n), "lane", "ocr", 1, until, object()) for n in numbers]


async def test_who_came_first_is_served_first_and_gets_no_more_than_its_limit() -> None:
    clock = Clock()
    requests = Requests(clock)
    first, second, third = (requests.add(2, SECOND) for _ in range(3))
    assert requests.wanted() == 6
    requests.spare.extend(arrived(clock, 1, 2, 3))
    assert len(requests.hand_out()) == 3
    assert [one.message.message_id for one in first.result()] == ["m1", "m2"]
    assert [one.message.message_id for one in second.result()] == ["m3"]
    assert not third.done()
    assert requests.wanted() == 2


async def test_what_came_for_one_that_has_gone_is_for_the_next() -> None:
    clock = Clock()
    requests = Requests(clock)
    requests.add(5, SECOND).cancel()
    requests.spare.extend(arrived(clock, 1))
    assert requests.hand_out() == []
    next_one = requests.add(5, SECOND)
    requests.hand_out()
    assert len(await next_one) == 1


async def test_what_was_kept_until_its_lock_ran_out_is_for_nobody() -> None:
    clock = Clock()
    requests = Requests(clock)
    requests.spare.extend(arrived(clock, 1))
    clock.advance(seconds=60)
    requests.spare.extend(arrived(clock, 2))
    request = requests.add(5, SECOND)
    requests.hand_out()
    assert [one.message.message_id for one in request.result()] == ["m2"]


async def test_a_wait_ends_after_a_look_by_whichever_clock_is_first() -> None:
    clock = Clock()
    requests = Requests(clock)
    impatient, patient = requests.add(1, timedelta(0)), requests.add(1, timedelta(hours=1))
    requests.end([])
    assert not impatient.done()
    requests.end(requests.look())
    assert impatient.result() == []
    assert not patient.done()
    assert requests.left() > timedelta(minutes=59)
    clock.advance(hours=1)
    requests.end(requests.look())
    assert patient.result() == []
    by_loop = requests.add(1, timedelta(0))
    clock.advance(hours=-1)
    requests.end(requests.look())
    assert by_loop.result() == []


@pytest.mark.parametrize(
    ("endpoint", "address"),
    [
        (Endpoint("example.servicebus.windows.net"), ("example.servicebus.windows.net", 5671)),
        (Endpoint("localhost", is_plain=True), ("localhost", 5672)),
        (Endpoint("127.0.0.1:6000", is_plain=True), ("127.0.0.1", 6000)),
        (Endpoint("[::1]:6000", is_plain=True), ("::1", 6000)),
    ],
)
def test_an_endpoint_names_a_host_and_perhaps_a_port(
    endpoint: Endpoint, address: tuple[str, int]
) -> None:
    assert endpoint.address == address


@pytest.mark.parametrize(
    "settings",
    [
        {"shortest_wait": timedelta(0)},
        {"shortest_wait": SECOND, "longest_look": SECOND / 2},
        {"attempt_timeout": SECOND / 10},
        {"first_pause": 2 * SECOND, "longest_pause": SECOND},
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, timedelta]) -> None:
    with pytest.raises(ValueError, match="must be"):
        ServiceBusSettings(**settings)  # type: ignore[arg-type]


def test_connections_trust_the_authorities_of_certifi_and_nobody_else() -> None:
    trusted = client_options(ServiceBusSettings())["ssl_context"]
    expected = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    expected.load_verify_locations(certifi.where())
    assert (trusted.verify_mode, trusted.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert trusted.get_ca_certs() == expected.get_ca_certs()
    assert trusted is client_options(ServiceBusSettings())["ssl_context"]
