"""One try: to whom a webhook goes, and what is made of the answer."""

import asyncio
import gzip
import json
import traceback
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web

from lucius_orchestrator.ports.webhooks import Webhook
from lucius_orchestrator.webhooks import WebhookKeys, WebhookPolicy, WebhookSender, verify
from lucius_orchestrator.webhooks.sender import (
    ANSWER_LIMIT,
    AddressForbidden,
    CheckedResolver,
    WebhookFailed,
)
from lucius_outbox import Undeliverable
from tests.ledger.backends import Clock
from tests.runner.deadlines import DEADLINE
from tests.webhooks.receiver import (
    HOST,
    KEY,
    LOOPBACK,
    Certificate,
    Names,
    Receiver,
    hang_up,
    never,
    status,
)

HERE = WebhookPolicy(frozenset({HOST}), allow_private=True)
OUTSIDE = WebhookPolicy(frozenset({HOST}))
SECRET = "hush"  # noqa: S105 - stands for what paths and queries hold


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def receiver(clock: Clock, certificate: Certificate) -> AsyncIterator[Receiver]:
    async with Receiver(clock).running(certificate) as receiver:
        yield receiver


@pytest.fixture
def trust(certificate: Certificate) -> Certificate:
    return certificate


def sender_of(
    receiver: Receiver,
    trust: Certificate | None,
    policy: WebhookPolicy = HERE,
    keys: tuple[bytes, ...] = (KEY,),
    names: Names | None = None,
    **settings: Any,
) -> AbstractAsyncContextManager[WebhookSender]:
    return WebhookSender(
        lambda _: keys,
        policy,
        receiver.clock,
        ca_file=trust.file if trust else None,
        resolver=names or Names(LOOPBACK),
        **settings,
    )


def webhook(url: str, event_id: str = "job_1.7.0") -> Webhook:
    return Webhook(event_id, "acme", url, json.dumps({"event_id": event_id, "ä": "ü"}).encode())


async def test_the_body_arrives_byte_for_byte(receiver: Receiver, trust: Certificate) -> None:
    sent = webhook(receiver.url("/done?x=1"))
    async with sender_of(receiver, trust) as sender:
        await sender.send(sent)
    assert receiver.bodies == [sent.body]
    assert [tried["path"] for tried in receiver.tries] == ["/done?x=1"]
    assert receiver.tries[0]["User-Agent"] == "lucius"


async def test_two_keys_sign_while_they_are_rotated(receiver: Receiver, trust: Certificate) -> None:
    new = b"n" * 32
    async with sender_of(receiver, trust, keys=(new, KEY)) as sender:
        await sender.send(webhook(receiver.url()))  # the receiver still has the old one
    header, (body,) = receiver.tries[0]["Lucius-Signature"], receiver.bodies
    verify(header, body, [new], receiver.clock())


async def test_the_signature_is_of_the_moment_of_the_try(
    receiver: Receiver, trust: Certificate
) -> None:
    async with sender_of(receiver, trust) as sender:
        await sender.send(webhook(receiver.url()))
        receiver.clock.advance(hours=6)
        await sender.send(webhook(receiver.url()))
    first, second = (tried["Lucius-Signature"] for tried in receiver.tries)
    assert first != second
    assert receiver.bodies[0] == receiver.bodies[1]


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
async def test_delivered(receiver: Receiver, trust: Certificate, code: int) -> None:
    receiver.answers.append(status(code))
    async with sender_of(receiver, trust) as sender:
        await sender.send(webhook(receiver.url()))


@pytest.mark.parametrize("code", [400, 401, 403, 404, 410, 413, 422])
async def test_not_wanted(receiver: Receiver, trust: Certificate, code: int) -> None:
    receiver.answers.append(status(code))
    async with sender_of(receiver, trust) as sender:
        with pytest.raises(Undeliverable, match=f"^{HOST} answered {code}$"):
            await sender.send(webhook(receiver.url()))


@pytest.mark.parametrize("code", [304, 408, 425, 429, 500, 502, 503, 504])
async def test_to_be_tried_again(receiver: Receiver, trust: Certificate, code: int) -> None:
    receiver.answers.append(status(code))
    async with sender_of(receiver, trust) as sender:
        with pytest.raises(WebhookFailed, match=f"^{HOST} answered {code}$"):
            await sender.send(webhook(receiver.url()))


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(receiver: Receiver, trust: Certificate, code: int) -> None:
    receiver.answers.append(status(code, Location=receiver.url("/elsewhere")))
    async with sender_of(receiver, trust) as sender:
        with pytest.raises(WebhookFailed, match=f"answered {code}"):
            await sender.send(webhook(receiver.url()))
    assert len(receiver.tries) == 1


async def test_a_name_that_is_allowed_leads_to_no_private_address(
    receiver: Receiver, trust: Certificate
) -> None:
    async with sender_of(receiver, trust, OUTSIDE) as sender:
        with pytest.raises(WebhookFailed, match=f"^{HOST}: it has private addresses only$"):
            await sender.send(webhook(receiver.url()))
    assert receiver.tries == []


async def test_a_private_literal_is_not_connected_to(
    receiver: Receiver, trust: Certificate
) -> None:
    """It is not resolved, so the resolver could not refuse it."""
    policy, names = WebhookPolicy(frozenset({LOOPBACK})), Names(LOOPBACK)
    async with sender_of(receiver, trust, policy, names=names) as sender:
        with pytest.raises(WebhookFailed, match="private"):
            await sender.send(webhook(receiver.url(host=LOOPBACK)))
    assert (receiver.tries, names.asked) == ([], [])


async def test_a_host_that_is_not_allowed_any_more_is_not_told(
    receiver: Receiver, trust: Certificate
) -> None:
    async with sender_of(receiver, trust, WebhookPolicy(frozenset(), True)) as sender:
        with pytest.raises(WebhookFailed, match="not on the list"):
            await sender.send(webhook(receiver.url()))
    assert receiver.tries == []


async def test_only_the_public_ones_of_several_addresses_are_used() -> None:
    names = Names("10.0.0.1", "93.184.215.14", "::1", "2606:2800:21f:cb07::1")
    found = await CheckedResolver(names, OUTSIDE).resolve(HOST, 443)
    assert [result["host"] for result in found] == ["93.184.215.14", "2606:2800:21f:cb07::1"]


async def test_a_name_without_addresses_is_refused() -> None:
    with pytest.raises(AddressForbidden):
        await CheckedResolver(Names(), HERE).resolve(HOST, 443)


async def test_a_receiver_with_an_unknown_certificate_is_told_nothing(receiver: Receiver) -> None:
    async with sender_of(receiver, trust=None) as sender:
        with pytest.raises(WebhookFailed, match="certificate verify failed"):
            await sender.send(webhook(receiver.url()))
    assert receiver.tries == []


async def test_a_receiver_that_does_not_answer_is_left(
    receiver: Receiver, trust: Certificate
) -> None:
    receiver.answers.append(never)
    moment = timedelta(milliseconds=200)
    async with sender_of(receiver, trust, timeout=moment) as sender:
        with pytest.raises(WebhookFailed, match=f"^{HOST}: no answer in time$"):
            await sender.send(webhook(receiver.url()))


async def test_a_receiver_that_hangs_up_is_tried_again(
    receiver: Receiver, trust: Certificate
) -> None:
    receiver.answers.append(hang_up)
    reason = "(ServerDisconnectedError|ClientOSError)"
    async with sender_of(receiver, trust) as sender:
        with pytest.raises(WebhookFailed, match=f"^{HOST}: {reason}$"):
            await sender.send(webhook(receiver.url()))
    assert len(receiver.tries) == 1


async def endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    while True:
        await answer.write(bytes(ANSWER_LIMIT))


async def unfinished(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    await answer.write(b"more to come")
    return await never(request)


async def dripping(request: web.Request) -> web.StreamResponse:
    """Never silent for long."""
    answer = web.StreamResponse()
    await answer.prepare(request)
    while True:
        await answer.write(b"x")
        await asyncio.sleep(0.01)


async def one_byte_too_long(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    await answer.write(bytes(ANSWER_LIMIT + 1))
    return await never(request)


async def packed(_: web.Request) -> web.StreamResponse:
    bomb = gzip.compress(bytes(100 * ANSWER_LIMIT))
    return web.Response(body=bomb, headers={"Content-Encoding": "gzip"})


@pytest.mark.parametrize("answer", [endless, unfinished, dripping, packed])
async def test_the_status_counts_whatever_comes_after_it(
    receiver: Receiver, trust: Certificate, answer: Any
) -> None:
    timeout = timedelta(seconds=1)
    while not await is_sent(receiver, trust, answer, timeout):
        timeout *= 2


async def is_sent(receiver: Receiver, trust: Certificate, answer: Any, timeout: timedelta) -> bool:
    """On a busy machine not even the status may come in time."""
    receiver.answers.append(answer)
    async with asyncio.timeout(2 * DEADLINE), sender_of(receiver, trust, timeout=timeout) as sender:
        try:
            await sender.send(webhook(receiver.url()))
        except WebhookFailed as error:
            if "in time" not in str(error) or timeout.total_seconds() > DEADLINE:
                raise
            return False
    return True


async def test_of_an_answer_no_more_is_read_than_the_limit(
    receiver: Receiver, trust: Certificate
) -> None:
    """Whoever reads on waits for the timeout."""
    receiver.answers.append(one_byte_too_long)
    async with (
        asyncio.timeout(DEADLINE),
        sender_of(receiver, trust, timeout=timedelta(hours=1)) as sender,
    ):
        await sender.send(webhook(receiver.url()))


async def test_a_compressed_answer_is_not_decompressed(
    receiver: Receiver, trust: Certificate
) -> None:
    """As it came it is short enough to be read to its end, so that the connection is kept; it is
    far too long when it is decompressed."""
    connections = []

    async def bomb(request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        connections.append(request.transport.get_extra_info("peername"))
        return await packed(request)

    receiver.answers.extend([bomb, bomb])
    async with sender_of(receiver, trust) as sender:
        await sender.send(webhook(receiver.url()))
        await sender.send(webhook(receiver.url()))
    assert len(connections) == 2
    assert len(set(connections)) == 1


@pytest.mark.parametrize("answer", [status(500), status(404), hang_up])
async def test_errors_name_neither_path_nor_query(
    receiver: Receiver, trust: Certificate, answer: Any
) -> None:
    receiver.answers.append(answer)
    async with sender_of(receiver, trust) as sender:
        with pytest.raises((WebhookFailed, Undeliverable)) as failed:
            await sender.send(webhook(receiver.url(f"/{SECRET}?token={SECRET}")))
    assert SECRET not in "".join(traceback.format_exception(failed.value))
    assert KEY.decode() not in str(failed.value)


def test_nothing_is_sent_unsigned() -> None:
    for keys in ([], [b""]):
        with pytest.raises(ValueError, match="key"):
            WebhookKeys(keys, lambda _: (1,))
