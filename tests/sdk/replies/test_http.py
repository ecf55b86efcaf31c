"""Replies to callback addresses, over real sockets."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from lucius_contract.messages import Reply
from lucius_sdk.replies.answers import (
    Answer,
    ReplyUnauthorised,
    ReplyUnavailable,
    Verdict,
)
from lucius_sdk.replies.http import HttpLimits, HttpReplies
from lucius_sdk.replies.outgoing import outgoing
from lucius_sdk.testing.clock import FakeClock
from tests.runner.deadlines import DEADLINE
from tests.sdk.replies.orchestrator import (
    Act,
    Orchestrator,
    announces,
    cuts,
    cuts_the_body,
    ends_with_the_connection,
    floods,
    hangs,
    says,
    says_more_than_it_was_asked,
    speaks_no_http,
    stops_in_the_body,
)
from tests.sdk.replies.samples import TOKEN, TRACE, ack, heartbeat, over_http, result
from tests.webhooks.receiver import new_certificate


@pytest.fixture
async def impatient(clock: FakeClock) -> AsyncIterator[HttpReplies]:
    http = HttpReplies(clock.now, HttpLimits(connect=0.1, total=0.1))
    yield http
    await http.close()


@pytest.mark.parametrize("message", [ack(), heartbeat(), result()])
async def test_a_reply_goes_to_its_address_with_token_and_trace_as_it_is(
    http: HttpReplies, orchestrator: Orchestrator, message: Reply
) -> None:
    answer = await http.send(over_http(orchestrator.origin), outgoing(message))
    [request] = orchestrator.requests
    assert answer.verdict is Verdict.APPLIED
    assert request.path == f"/v1/callbacks/{message.type.lower()}"
    assert request.body == message.to_bytes()
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["traceparent"] == TRACE
    assert request.headers["content-type"] == "application/json"
    assert request.headers["content-length"] == str(len(request.body))
    assert request.headers["host"] == f"127.0.0.1:{orchestrator.port}"


async def test_without_token_and_trace_there_are_no_such_headers(
    http: HttpReplies, orchestrator: Orchestrator
) -> None:
    address = over_http(orchestrator.origin, token=None)
    await http.send(address, outgoing(ack(traceparent=None)))
    [request] = orchestrator.requests
    assert not request.headers.keys() & {"authorization", "traceparent"}


async def test_a_trace_that_no_header_can_carry_stops_no_reply(
    http: HttpReplies, orchestrator: Orchestrator
) -> None:
    reply = outgoing(ack(traceparent="a\r\nx-evil: 1"))
    await http.send(over_http(orchestrator.origin), reply)
    [request] = orchestrator.requests
    assert not request.headers.keys() & {"traceparent", "x-evil"}


@pytest.mark.parametrize("token", ["", "two words", "a\r\nx-evil: 1", "é"])
async def test_a_token_that_no_header_can_carry_is_refused_and_not_repeated(
    http: HttpReplies, orchestrator: Orchestrator, token: str
) -> None:
    answer = await http.send(over_http(orchestrator.origin, token), outgoing(ack()))
    assert answer.verdict is Verdict.REFUSED
    assert answer.detail == "the directive's token holds characters that no token has"
    assert orchestrator.requests == []


async def test_an_address_that_leads_nowhere_is_refused(http: HttpReplies) -> None:
    answer = await http.send(over_http("gopher://x"), outgoing(ack()))
    assert answer == Answer(
        Verdict.REFUSED, detail="the callback address is not one of http or https"
    )


async def test_connections_are_kept(http: HttpReplies, orchestrator: Orchestrator) -> None:
    for _ in range(5):
        await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert orchestrator.connections == 1


async def test_a_connection_that_its_server_gives_up_is_not_used_again(
    http: HttpReplies, orchestrator: Orchestrator
) -> None:
    orchestrator.will(says(200, connection="close"))
    for _ in range(3):
        await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert orchestrator.connections == 2


async def test_a_connection_that_ended_while_it_rested_is_not_used_again(
    http: HttpReplies, orchestrator: Orchestrator
) -> None:
    await http.send(over_http(orchestrator.origin), outgoing(ack()))
    await orchestrator.go_away()
    await orchestrator.come_back()
    for _ in range(200):  # until its end was noticed
        await asyncio.sleep(0)
    answer = await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert answer.verdict is Verdict.APPLIED


async def test_a_connection_that_rested_too_long_is_not_used_again(
    clock: FakeClock, orchestrator: Orchestrator
) -> None:
    http = HttpReplies(clock.now, HttpLimits(idle=-1))
    for _ in range(2):
        await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert orchestrator.connections == 2
    await http.close()


@pytest.mark.parametrize("act", [announces, ends_with_the_connection])
async def test_an_answer_in_another_form_is_understood(
    http: HttpReplies, orchestrator: Orchestrator, act: Act
) -> None:
    orchestrator.will(act)
    answer = await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert answer.verdict is Verdict.DUPLICATE
    answer = await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert answer.verdict is Verdict.APPLIED


async def test_what_nobody_asked_for_is_no_answer_to_the_next_reply(
    http: HttpReplies, orchestrator: Orchestrator
) -> None:
    orchestrator.will(says_more_than_it_was_asked)
    for _ in range(2):
        answer = await http.send(over_http(orchestrator.origin), outgoing(ack()))
        assert answer.verdict is Verdict.APPLIED
    assert orchestrator.connections == 2


async def test_over_tls_the_certificate_must_be_trusted_and_have_the_name(
    clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = new_certificate(tmp_path, "localhost")
    orchestrator = Orchestrator(certificate.server_context())
    await orchestrator.come_back()
    origin = f"https://localhost:{orchestrator.port}"
    stranger = HttpReplies(clock.now)
    with pytest.raises(ReplyUnavailable, match="self-signed certificate"):
        await stranger.send(over_http(origin), outgoing(ack()))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate.file))
    friend = HttpReplies(clock.now)
    with pytest.raises(ReplyUnavailable, match="not valid for '127"):
        await friend.send(over_http(origin.replace("localhost", "127.0.0.1")), outgoing(ack()))
    assert orchestrator.requests == []
    assert (await friend.send(over_http(origin), outgoing(ack()))).verdict is Verdict.APPLIED
    for http in (stranger, friend):
        await http.close()
    await orchestrator.go_away()


async def test_no_cookies_are_kept(http: HttpReplies, orchestrator: Orchestrator) -> None:
    orchestrator.will(says(200, set_cookie="a=b"))
    for _ in range(2):  # by name: nobody keeps cookies of bare addresses
        await http.send(over_http(f"http://localhost:{orchestrator.port}"), outgoing(ack()))
    assert "cookie" not in orchestrator.requests[1].headers


async def test_a_hundred_replies_are_under_way_at_once(
    http: HttpReplies, orchestrator: Orchestrator
) -> None:
    release = asyncio.Event()

    async def when_all_are_there(writer: asyncio.StreamWriter) -> None:
        await release.wait()
        await says(200)(writer)

    orchestrator.otherwise = when_all_are_there
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        for _ in range(100):
            tasks.create_task(http.send(over_http(orchestrator.origin), outgoing(ack())))
        await orchestrator.received(100)
        release.set()


async def test_redirects_are_not_followed(http: HttpReplies, orchestrator: Orchestrator) -> None:
    orchestrator.will(says(307, location=f"{orchestrator.origin}/elsewhere"))
    with pytest.raises(ReplyUnavailable, match="answered 307"):
        await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert len(orchestrator.requests) == 1


@pytest.mark.parametrize("act", [cuts, cuts_the_body, speaks_no_http])
async def test_a_broken_answer_is_none_and_the_next_reply_is_answered(
    http: HttpReplies, orchestrator: Orchestrator, act: Act
) -> None:
    orchestrator.will(act)
    with pytest.raises(ReplyUnavailable, match=f"^{orchestrator.origin}: ."):
        await http.send(over_http(orchestrator.origin), outgoing(ack()))
    answer = await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert answer.verdict is Verdict.APPLIED


@pytest.mark.parametrize("act", [hangs, stops_in_the_body])
async def test_an_answer_that_does_not_come_is_not_waited_for_without_end(
    impatient: HttpReplies, orchestrator: Orchestrator, act: Act
) -> None:
    orchestrator.will(act)
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(ReplyUnavailable, match="no answer in time"):
            await impatient.send(over_http(orchestrator.origin), outgoing(ack()))


async def test_an_answer_without_end_is_read_no_further_than_an_answer_goes(
    http: HttpReplies, orchestrator: Orchestrator
) -> None:
    orchestrator.will(floods)
    async with asyncio.timeout(DEADLINE):
        answer = await http.send(over_http(orchestrator.origin), outgoing(ack()))
        assert answer == Answer(Verdict.APPLIED)
        await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert orchestrator.connections == 2


async def test_nobody_there(http: HttpReplies, orchestrator: Orchestrator) -> None:
    await orchestrator.go_away()
    with pytest.raises(ReplyUnavailable, match=f"{orchestrator.origin}: Connect"):
        await http.send(over_http(orchestrator.origin), outgoing(ack()))


async def test_an_unknown_name(http: HttpReplies) -> None:
    with pytest.raises(ReplyUnavailable, match=r"^http://nobody\.invalid: "):
        await http.send(over_http("http://nobody.invalid"), outgoing(ack()))


async def test_a_server_without_tls_is_not_talked_to_over_https(
    http: HttpReplies, orchestrator: Orchestrator
) -> None:
    origin = orchestrator.origin.replace("http:", "https:")
    with pytest.raises(ReplyUnavailable, match=origin):
        await http.send(over_http(origin), outgoing(ack()))
    assert orchestrator.requests == []


async def test_a_proxy_of_the_environment_gets_what_is_not_for_this_machine(
    http: HttpReplies, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", orchestrator.origin)
    monkeypatch.delenv("no_proxy", raising=False)
    answer = await http.send(over_http("http://elsewhere.example"), outgoing(ack()))
    assert answer.verdict is Verdict.APPLIED
    assert orchestrator.requests[0].path == "http://elsewhere.example/v1/callbacks/ack"


async def test_a_proxy_that_cannot_be_used_is_the_environments_fault_and_may_be_mended(
    http: HttpReplies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "socks9://proxy.example")
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(ReplyUnavailable, match=r"^http://elsewhere\.example: "):
        await http.send(over_http("http://elsewhere.example"), outgoing(ack()))


async def test_a_proxy_that_hangs_up_is_named_with_its_reason(
    http: HttpReplies, orchestrator: Orchestrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    orchestrator.otherwise = cuts
    monkeypatch.setenv("http_proxy", orchestrator.origin)
    monkeypatch.delenv("no_proxy", raising=False)
    reason = "(ServerDisconnectedError|ClientOSError|Connection reset by peer)"
    with pytest.raises(ReplyUnavailable, match=f"^http://elsewhere.example: {reason}$"):
        await http.send(over_http("http://elsewhere.example"), outgoing(ack()))


async def test_a_reply_that_is_given_up_leaves_the_others_alone(
    http: HttpReplies, orchestrator: Orchestrator
) -> None:
    orchestrator.will(hangs)
    sending = asyncio.create_task(http.send(over_http(orchestrator.origin), outgoing(ack())))
    await orchestrator.received(1)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    answer = await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert answer.verdict is Verdict.APPLIED


async def test_closing_cuts_off_what_is_under_way(
    clock: FakeClock, orchestrator: Orchestrator
) -> None:
    http = HttpReplies(clock.now, HttpLimits(total=10 * DEADLINE))
    orchestrator.will(hangs)
    sending = asyncio.create_task(http.send(over_http(orchestrator.origin), outgoing(ack())))
    await orchestrator.received(1)
    async with asyncio.timeout(DEADLINE):
        await http.close()
        with pytest.raises(ReplyUnavailable):
            await sending


async def test_a_bad_token_and_a_busy_server(http: HttpReplies, orchestrator: Orchestrator) -> None:
    orchestrator.will(says(401), says(429, retry_after="7"))
    with pytest.raises(ReplyUnauthorised):
        await http.send(over_http(orchestrator.origin), outgoing(ack()))
    with pytest.raises(ReplyUnavailable) as caught:
        await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert caught.value.retry_after == 7


def everything_in(error: BaseException | None) -> str:
    """All that a log could show of an error and of those behind it."""
    text = ""
    while error is not None:
        text += f"{error} {error!r} {error.args!r} {vars(error)!r}"
        error = error.__cause__ or error.__context__
    return text


@pytest.mark.parametrize(
    "act", [cuts, cuts_the_body, speaks_no_http, says(401), says(503), says(302, location="/")]
)
async def test_no_error_repeats_the_token_or_the_lease(
    http: HttpReplies,
    orchestrator: Orchestrator,
    act: Act,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    orchestrator.will(act)
    reply = outgoing(result())
    with pytest.raises((ReplyUnavailable, ReplyUnauthorised)) as caught:
        await http.send(over_http(orchestrator.origin), reply)
    shown = everything_in(caught.value) + caplog.text + repr(over_http(orchestrator.origin))
    assert TOKEN not in shown
    assert result().lease_id not in shown


@pytest.mark.parametrize("before", ["", "x" * 450])
async def test_a_refusal_that_repeats_the_token_is_shown_without_it(
    http: HttpReplies, orchestrator: Orchestrator, before: str
) -> None:
    orchestrator.will(says(400, {"detail": f"{before} what is {TOKEN}?"}))
    answer = await http.send(over_http(orchestrator.origin), outgoing(ack()))
    assert answer.verdict is Verdict.REFUSED
    assert TOKEN[:8] not in answer.detail
