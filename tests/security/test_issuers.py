"""The keys of an issuer: when they are fetched, and what happens while it is away."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.security.callers import Caller
from lucius_orchestrator.security.issuers import JwtAuthenticator
from tests.runner.deadlines import DEADLINE
from tests.security.clock import Clock
from tests.security.issuer import Issuer, SigningKey, authenticator_of, claims, ec_key, rsa_key
from tests.security.refusals import answer, refused

OLD, NEW, UNKNOWN = ec_key("old"), ec_key("new"), ec_key("unknown")
UNAUTHENTICATED, UNAVAILABLE = ErrorCode.UNAUTHENTICATED, ErrorCode.UNAVAILABLE

Ask = Callable[[SigningKey], Awaitable[str]]


@pytest.fixture
def ask(authenticator: JwtAuthenticator, issuer: Issuer, clock: Clock) -> Ask:
    """Who a good token of this key is, or why it is refused."""
    issuer.publish(OLD)

    async def ask(key: SigningKey) -> str:
        token = key.sign(claims(clock.now))
        said = await answer(authenticator.authenticate(f"Bearer {token}"))
        return said.name if isinstance(said, Caller) else said

    return ask


async def test_keys_are_fetched_once_and_kept(ask: Ask, issuer: Issuer, clock: Clock) -> None:
    for _ in range(5):
        assert await ask(OLD) == "alice"
        clock.advance(seconds=59)
    assert issuer.fetches == 1


async def test_a_new_key_is_found_and_the_old_one_still_counts(
    ask: Ask, issuer: Issuer, clock: Clock
) -> None:
    assert await ask(OLD) == "alice"
    issuer.publish(OLD, NEW)
    clock.advance(minutes=1)
    assert await ask(NEW) == "alice"
    assert await ask(OLD) == "alice"
    assert issuer.fetches == 2


async def test_a_key_taken_back_is_refused_after_five_minutes(
    ask: Ask, issuer: Issuer, clock: Clock
) -> None:
    assert await ask(OLD) == "alice"
    issuer.publish(NEW)
    clock.advance(minutes=5)
    assert await ask(OLD) == UNAUTHENTICATED
    assert await ask(NEW) == "alice"


async def test_an_issuer_may_take_all_its_keys_back(ask: Ask, issuer: Issuer, clock: Clock) -> None:
    assert await ask(OLD) == "alice"
    issuer.publish()
    clock.advance(minutes=5)
    assert await ask(OLD) == UNAUTHENTICATED


async def test_unknown_keys_are_asked_for_at_most_once_a_minute(
    ask: Ask, issuer: Issuer, clock: Clock
) -> None:
    assert await ask(OLD) == "alice"
    clock.advance(minutes=1)
    for number in range(5):
        assert await ask(ec_key(f"made-up-{number}")) == UNAUTHENTICATED
    clock.advance(seconds=59.999)
    assert await ask(UNKNOWN) == UNAUTHENTICATED
    assert issuer.fetches == 2
    clock.advance(seconds=0.001)
    assert await ask(UNKNOWN) == UNAUTHENTICATED
    assert issuer.fetches == 3


async def test_the_last_copy_serves_for_an_hour_while_the_issuer_is_away(
    ask: Ask, issuer: Issuer, clock: Clock
) -> None:
    assert await ask(OLD) == "alice"
    issuer.away = True
    clock.advance(minutes=30)
    assert await ask(OLD) == "alice"
    clock.advance(minutes=30)
    assert await ask(OLD) == "alice"
    clock.advance(microseconds=1)
    assert await ask(OLD) == UNAVAILABLE


async def test_an_issuer_that_is_back_is_asked_again_within_seconds(
    ask: Ask, issuer: Issuer, clock: Clock
) -> None:
    issuer.away = True
    assert await ask(OLD) == UNAVAILABLE
    issuer.away = False
    clock.advance(seconds=4.999)
    assert await ask(OLD) == UNAVAILABLE
    assert issuer.fetches == 1
    clock.advance(seconds=0.001)
    assert await ask(OLD) == "alice"


async def test_an_issuer_that_is_away_is_asked_once_a_minute_while_a_copy_serves(
    ask: Ask, issuer: Issuer, clock: Clock
) -> None:
    assert await ask(OLD) == "alice"
    issuer.away = True
    clock.advance(minutes=5)
    for _ in range(12):
        assert await ask(OLD) == "alice"
        clock.advance(seconds=10)
    assert issuer.fetches == 3


async def test_an_unknown_key_cannot_be_judged_while_the_issuer_is_away(
    ask: Ask, issuer: Issuer, clock: Clock
) -> None:
    assert await ask(OLD) == "alice"
    issuer.away = True
    clock.advance(minutes=1)
    assert await ask(NEW) == UNAVAILABLE
    assert await ask(OLD) == "alice"


async def test_a_clock_that_was_set_back_does_not_lengthen_the_hour(
    ask: Ask, issuer: Issuer, clock: Clock
) -> None:
    assert await ask(OLD) == "alice"
    issuer.away = True
    clock.advance(hours=-2)
    assert await ask(OLD) == UNAVAILABLE


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hunter2",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b"\xff",
        b"[" * 100_000,
        b'{"keys": [], "more": "' + b"x" * 300_000 + b'"}',
    ],
    ids=lambda body: body[:10].decode(errors="replace"),
)
async def test_an_answer_that_is_no_key_set_counts_as_none(
    ask: Ask, issuer: Issuer, clock: Clock, body: bytes
) -> None:
    assert await ask(OLD) == "alice"
    issuer.body = body
    clock.advance(minutes=5)
    assert await ask(OLD) == "alice"
    clock.advance(minutes=56)
    assert await ask(OLD) == UNAVAILABLE


async def test_entries_that_are_no_keys_are_passed_over(ask: Ask, issuer: Issuer) -> None:
    issuer.publish_jwks(1, None, [], {}, {"kid": "x"}, {"kty": "RSA", "kid": "y"}, OLD.jwk())
    assert await ask(OLD) == "alice"


async def test_of_two_keys_with_one_id_the_first_counts(ask: Ask, issuer: Issuer) -> None:
    issuer.publish_jwks(OLD.jwk(), NEW.jwk(kid=OLD.kid))
    assert await ask(OLD) == "alice"


async def test_a_redirect_is_not_followed(issuer: Issuer, clock: Clock) -> None:
    authenticator = authenticator_of(issuer.url.replace("/jwks", "/moved"), clock)
    token = ec_key().sign(claims(clock.now))
    with refused(UNAVAILABLE, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")
    assert issuer.fetches == 0


async def test_an_address_where_nobody_listens_is_unavailable(clock: Clock) -> None:
    authenticator = authenticator_of("http://127.0.0.1:1/jwks", clock)
    token = ec_key().sign(claims(clock.now))
    with refused(UNAVAILABLE, hiding=token):
        await authenticator.authenticate(f"Bearer {token}")


async def test_operators_are_told_why_the_keys_cannot_be_had(
    ask: Ask, issuer: Issuer, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    issuer.body = b"hunter2"
    with caplog.at_level(logging.WARNING, "lucius_orchestrator"):
        await ask(OLD)
        issuer.away = True
        clock.advance(seconds=5)
        await ask(OLD)
    told = [(record.message, record.__dict__["reason"]) for record in caplog.records]
    assert told == [
        ("issuer.unavailable", "not a key set"),
        ("issuer.unavailable", "HTTP status 503"),
    ]


async def test_requests_at_the_same_time_share_one_fetch(ask: Ask, issuer: Issuer) -> None:
    issuer.gate.clear()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        asked = [group.create_task(_text(ask, OLD)) for _ in range(10)]
        await issuer.came.wait()
        issuer.gate.set()
    assert {task.result() for task in asked} == {"alice"}
    assert issuer.fetches == 1


async def test_callers_with_known_keys_do_not_wait_for_an_issuer_that_hangs(
    ask: Ask, issuer: Issuer, clock: Clock
) -> None:
    assert await ask(OLD) == "alice"
    clock.advance(minutes=5)
    issuer.came.clear()
    issuer.gate.clear()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        waiting = group.create_task(_text(ask, UNKNOWN))
        await issuer.came.wait()
        assert await ask(OLD) == "alice"
        assert not waiting.done()
        issuer.gate.set()
    assert waiting.result() == UNAUTHENTICATED


async def test_a_caller_that_hangs_up_does_not_stop_the_fetch(ask: Ask, issuer: Issuer) -> None:
    issuer.gate.clear()
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as group:
        impatient = group.create_task(_text(ask, OLD))
        await issuer.came.wait()
        impatient.cancel()
        patient = group.create_task(_text(ask, OLD))
        issuer.gate.set()
    assert patient.result() == "alice"
    assert issuer.fetches == 1


async def test_keys_of_several_kinds_stand_side_by_side(ask: Ask, issuer: Issuer) -> None:
    issuer.publish(OLD, rsa_key())
    assert [await ask(OLD), await ask(rsa_key())] == ["alice", "alice"]


async def _text(ask: Ask, key: SigningKey) -> str:
    return await ask(key)
