"""ACK, HEARTBEAT and RESULT until they are answered. Tests move the time; sockets are real."""

import asyncio
import math
from collections.abc import Awaitable
from datetime import timedelta

import pytest

from lucius_bus.memory import MemoryBus
from lucius_contract.errors import ContractError
from lucius_contract.messages import MessageType
from lucius_contract.routing import REPLY_SUBSCRIPTION, reply_topic
from lucius_sdk.ack_client import AckClient
from lucius_sdk.replies.answers import Answer, ReplyError, ReplyUnavailable, Verdict
from lucius_sdk.replies.outgoing import outgoing
from lucius_sdk.replies.routing import Replies
from lucius_sdk.result_client import ResultClient
from lucius_sdk.testing.clock import FakeClock
from tests.runner.deadlines import DEADLINE
from tests.sdk.replies.orchestrator import Orchestrator, cuts, hangs, says
from tests.sdk.replies.samples import AT, ON_THE_BUS, ack, heartbeat, over_http, result

BODY = result().to_bytes()
LATER = AT + timedelta(minutes=15)


class Failures:
    """The failures after which a client waits to try again, as they happen."""

    def __init__(self, clock: FakeClock) -> None:
        self.seen: list[tuple[MessageType, ReplyError]] = []
        self._clock = clock
        self._new = asyncio.Event()

    def __call__(self, type: MessageType, error: ReplyError) -> None:
        self.seen.append((type, error))
        self._new.set()

    async def next(self) -> None:
        """Returns when the client waits for its next try."""
        async with asyncio.timeout(DEADLINE):
            await self._new.wait()
        self._new.clear()

    async def pass_by(self, *waits: float) -> None:
        """After each failure, so many seconds."""
        for wait in waits:
            await self.next()
            self._clock.advance(wait)


@pytest.fixture
def failures(clock: FakeClock) -> Failures:
    return Failures(clock)


def no_chance() -> float:
    return 0.0


@pytest.fixture
def acks(replies: Replies, clock: FakeClock, failures: Failures) -> AckClient:
    return AckClient(replies, clock, no_chance, retried=failures)


@pytest.fixture
def results(replies: Replies, clock: FakeClock, failures: Failures) -> ResultClient:
    return ResultClient(replies, clock, no_chance, retried=failures)


async def soon(answered: Awaitable[Answer | None]) -> Answer | None:
    async with asyncio.timeout(DEADLINE):
        return await answered


def whenever() -> float:
    return math.inf


async def test_an_ack_brings_what_the_orchestrator_says(
    acks: AckClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    address = over_http(orchestrator.origin)
    answer = await soon(acks.ack(address, outgoing(ack()), whenever))
    assert answer == Answer(Verdict.APPLIED, AT + timedelta(minutes=15))
    assert failures.seen == []


async def test_an_ack_is_tried_again_ever_more_slowly(
    acks: AckClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    orchestrator.will(cuts, says(500), says(408), says(401))
    acking = asyncio.create_task(
        acks.ack(over_http(orchestrator.origin), outgoing(ack()), whenever)
    )
    await failures.pass_by(0.2, 0.4, 0.8, 1.6)
    answer = await soon(acking)
    assert answer is not None
    assert answer.verdict is Verdict.APPLIED
    assert {request.body for request in orchestrator.requests} == {ack().to_bytes()}
    assert [type for type, _ in failures.seen] == [MessageType.ACK] * 4


async def test_nothing_is_sent_before_its_time(
    acks: AckClient, orchestrator: Orchestrator, failures: Failures, clock: FakeClock
) -> None:
    orchestrator.will(says(429, retry_after="7"))
    acking = asyncio.create_task(
        acks.ack(over_http(orchestrator.origin), outgoing(ack()), whenever)
    )
    await failures.pass_by(6.99)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(orchestrator.requests) == 1
    clock.advance(0.02)
    await soon(acking)
    assert len(orchestrator.requests) == 2


async def test_a_final_answer_ends_the_tries(acks: AckClient, orchestrator: Orchestrator) -> None:
    orchestrator.will(says(409, {"code": "STALE_ATTEMPT"}))
    answer = await soon(acks.ack(over_http(orchestrator.origin), outgoing(ack()), whenever))
    assert answer is not None
    assert answer.verdict is Verdict.STALE


async def test_an_ack_is_given_up_at_its_deadline_and_not_sent_again_then(
    acks: AckClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    orchestrator.otherwise = says(503, retry_after="60")
    acking = asyncio.create_task(
        acks.ack(over_http(orchestrator.origin), outgoing(ack()), lambda: 5.0)
    )
    await failures.pass_by(5.0)
    assert await soon(acking) is None
    assert len(orchestrator.requests) == 1


async def test_a_deadline_that_moves_is_followed(
    acks: AckClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    until = 5.0
    orchestrator.will(says(503, retry_after="60"), says(503))
    acking = asyncio.create_task(
        acks.ack(over_http(orchestrator.origin), outgoing(ack()), lambda: until)
    )
    await orchestrator.received(1)
    until = 500.0
    await failures.pass_by(60.0, 0.4)
    answer = await soon(acking)
    assert answer is not None
    assert answer.verdict is Verdict.APPLIED


async def test_after_the_deadline_nothing_is_sent_at_all(
    acks: AckClient, orchestrator: Orchestrator
) -> None:
    address = over_http(orchestrator.origin)
    assert await soon(acks.ack(address, outgoing(ack()), lambda: 0.0)) is None
    assert orchestrator.requests == []


async def test_a_heartbeat_is_given_up_when_the_next_is_due(
    acks: AckClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    await orchestrator.go_away()
    beating = asyncio.create_task(
        acks.heartbeat(over_http(orchestrator.origin), outgoing(heartbeat()), lambda: 0.3)
    )
    await failures.pass_by(0.2, 0.1)
    assert await soon(beating) is None
    assert [type for type, _ in failures.seen] == [MessageType.HEARTBEAT] * 2


async def test_a_heartbeat_hears_that_cancel_was_requested(
    acks: AckClient, orchestrator: Orchestrator
) -> None:
    orchestrator.will(says(200, {"verdict": "APPLIED", "cancel_requested": True}))
    address = over_http(orchestrator.origin)
    answer = await soon(acks.heartbeat(address, outgoing(heartbeat()), whenever))
    assert answer is not None
    assert answer.cancel_requested


async def test_on_the_bus_an_ack_is_sent_when_the_bus_is_back(
    acks: AckClient, bus: MemoryBus, failures: Failures, clock: FakeClock
) -> None:
    bus.go_away()
    acking = asyncio.create_task(acks.ack(ON_THE_BUS, outgoing(ack()), whenever))
    await failures.pass_by(0.2)
    await failures.next()
    bus.come_back()
    clock.advance(0.4)
    assert await soon(acking) == Answer(Verdict.SENT)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, Verdict.APPLIED),
        (400, Verdict.REFUSED),
        (404, Verdict.REFUSED),
        (409, Verdict.REFUSED),
        (413, Verdict.REFUSED),
        (422, Verdict.REFUSED),
    ],
)
async def test_a_result_is_reported_once_somebody_has_decided(
    results: ResultClient, orchestrator: Orchestrator, status: int, verdict: Verdict
) -> None:
    orchestrator.will(says(status))
    answer = await soon(results.report(over_http(orchestrator.origin), BODY, LATER))
    assert answer is not None
    assert answer.verdict is verdict
    assert len(orchestrator.requests) == 1


async def test_a_result_outlives_an_orchestrator_that_is_away_for_long(
    results: ResultClient, orchestrator: Orchestrator, failures: Failures, clock: FakeClock
) -> None:
    await orchestrator.go_away()
    reporting = asyncio.create_task(results.report(over_http(orchestrator.origin), BODY, AT))
    await failures.pass_by(*[30.0] * 49)
    await failures.next()
    await orchestrator.come_back()
    clock.advance(30.0)
    answer = await soon(reporting)
    assert answer is not None
    assert answer.verdict is Verdict.APPLIED
    assert [request.body for request in orchestrator.requests] == [BODY]


async def test_a_result_is_the_same_bytes_at_every_try(
    results: ResultClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    orchestrator.will(cuts, says(502), says(429, retry_after="1"), cuts)
    reporting = asyncio.create_task(results.report(over_http(orchestrator.origin), BODY, LATER))
    await failures.pass_by(*[30.0] * 4)
    await soon(reporting)
    assert [request.body for request in orchestrator.requests] == [BODY] * 5


async def test_a_token_that_is_not_accepted_is_tried_until_the_deadline(
    results: ResultClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    orchestrator.otherwise = says(403)
    deadline = AT + timedelta(seconds=1)
    reporting = asyncio.create_task(results.report(over_http(orchestrator.origin), BODY, deadline))
    await failures.pass_by(0.2, 0.4, 0.4)
    answer = await soon(reporting)
    assert answer == Answer(Verdict.REFUSED, detail=f"{orchestrator.origin} answered 403")
    assert len(orchestrator.requests) == 3


async def test_a_token_that_is_accepted_again_in_time_counts(
    results: ResultClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    orchestrator.will(says(401))
    reporting = asyncio.create_task(results.report(over_http(orchestrator.origin), BODY, LATER))
    await failures.pass_by(0.2)
    answer = await soon(reporting)
    assert answer is not None
    assert answer.verdict is Verdict.APPLIED


async def test_after_the_deadline_a_bad_token_is_final_and_an_absent_server_is_not(
    results: ResultClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    orchestrator.will(says(503), says(401))
    reporting = asyncio.create_task(
        results.report(over_http(orchestrator.origin), BODY, AT - timedelta(hours=1))
    )
    await failures.pass_by(0.2)
    answer = await soon(reporting)
    assert answer is not None
    assert answer.verdict is Verdict.REFUSED
    assert len(orchestrator.requests) == 2


async def test_a_report_can_be_given_up_while_it_waits(
    results: ResultClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    await orchestrator.go_away()
    reporting = asyncio.create_task(results.report(over_http(orchestrator.origin), BODY, LATER))
    await failures.pass_by(0.2, 0.1)
    reporting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(reporting)


async def test_a_report_can_be_given_up_in_a_try_that_hangs(
    results: ResultClient, orchestrator: Orchestrator
) -> None:
    orchestrator.will(hangs)
    reporting = asyncio.create_task(results.report(over_http(orchestrator.origin), BODY, LATER))
    await orchestrator.received(1)
    reporting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(reporting)


async def test_nothing_is_left_running_after_a_report(
    results: ResultClient, orchestrator: Orchestrator, bus: MemoryBus
) -> None:
    before = asyncio.all_tasks()
    await soon(results.report(ON_THE_BUS, BODY, LATER))
    for _ in range(3):
        await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_a_result_on_the_bus_waits_for_the_bus(
    results: ResultClient, bus: MemoryBus, failures: Failures, clock: FakeClock
) -> None:
    bus.go_away()
    reporting = asyncio.create_task(results.report(ON_THE_BUS, BODY, AT))
    await failures.pass_by(*[30.0] * 5)
    await failures.next()
    bus.come_back()
    clock.advance(30.0)
    assert await soon(reporting) == Answer(Verdict.SENT)
    [delivery] = await bus.receive(reply_topic(3), REPLY_SUBSCRIPTION, 10, timedelta(0))
    assert delivery.message.body == BODY


async def test_bytes_that_are_no_result_are_not_sent(
    results: ResultClient, orchestrator: Orchestrator
) -> None:
    with pytest.raises(ContractError):
        await results.report(over_http(orchestrator.origin), b"{}", LATER)
    assert orchestrator.requests == []


async def test_chance_spreads_those_who_failed_together(
    replies: Replies, orchestrator: Orchestrator, clock: FakeClock, failures: Failures
) -> None:
    results = ResultClient(replies, clock, lambda: 1.0, retried=failures)
    orchestrator.will(says(503))
    reporting = asyncio.create_task(results.report(over_http(orchestrator.origin), BODY, LATER))
    await failures.pass_by(0.1)
    assert await soon(reporting) is not None


async def test_failures_say_who_failed_and_how(
    acks: AckClient, orchestrator: Orchestrator, failures: Failures
) -> None:
    orchestrator.will(says(503, retry_after="1"))
    acking = asyncio.create_task(
        acks.ack(over_http(orchestrator.origin), outgoing(ack()), whenever)
    )
    await failures.pass_by(1.0)
    await soon(acking)
    [(_, error)] = failures.seen
    assert isinstance(error, ReplyUnavailable)
    assert str(error) == f"{orchestrator.origin} answered 503"
