"""The clients against the orchestrator's own API, served on a socket."""

from collections.abc import AsyncIterator

import pytest

from lucius_bus.memory import MemoryBus
from lucius_contract.documents import Ref
from lucius_contract.messages import Directive, Message, ResultStatus
from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.replies.answers import ReplyUnauthorised, Verdict
from lucius_sdk.replies.http import HttpReplies
from lucius_sdk.replies.outgoing import outgoing
from tests.api.serving import address, served
from tests.api.stage import LIFE, Stage
from tests.engine.plane import Plane, ack, heartbeat, result
from tests.ledger.backends import Clock, MemoryBackend
from tests.sdk.replies.samples import over_http


class Served:
    def __init__(self, stage: Stage, port: int, directive: Directive) -> None:
        self.stage = stage
        self.directive = directive
        self._origin = address(port)

    def callback(self, of: Message | None = None) -> ReplyAddress:
        """With the token of this attempt, or of another."""
        attempt = of or self.directive
        token = self.stage.tokens.issue(
            attempt.job_id,
            attempt.step_id,
            attempt.attempt_no,
            attempt.lease_id,
            self.stage.plane.clock() + LIFE,
        )
        return over_http(self._origin, token)


@pytest.fixture
async def orchestrated() -> AsyncIterator[Served]:
    backend = MemoryBackend(Clock())
    bus = MemoryBus(backend.clock)
    await backend.start()
    stage = Stage(Plane.new(backend, bus))
    await stage.submitted()
    async with served(stage.app) as port:
        yield Served(stage, port, await stage.plane.directive())
    await bus.close()
    await backend.stop()


async def test_an_ack_hears_how_long_its_lease_lasts(
    http: HttpReplies, orchestrated: Served
) -> None:
    given = orchestrated.directive
    answer = await http.send(orchestrated.callback(), outgoing(ack(given)))
    assert answer.verdict is Verdict.APPLIED
    assert answer.lease_expires_at is not None
    assert answer.lease_expires_at > orchestrated.stage.plane.clock()
    assert not answer.cancel_requested


async def test_a_heartbeat_hears_that_cancel_was_requested(
    http: HttpReplies, orchestrated: Served
) -> None:
    given = orchestrated.directive
    await http.send(orchestrated.callback(), outgoing(ack(given)))
    await orchestrated.stage.post(f"/v1/jobs/{given.job_id}:cancel")
    answer = await http.send(orchestrated.callback(), outgoing(heartbeat(given, 0.5)))
    assert answer.cancel_requested


async def test_a_result_counts_once(http: HttpReplies, orchestrated: Served) -> None:
    given, to = orchestrated.directive, orchestrated.callback()
    other = result(given, output_ref=Ref(uri="az://x/y"))
    verdicts = [
        (await http.send(to, outgoing(reply))).verdict
        for reply in (result(given), result(given), other)
    ]
    assert verdicts == [Verdict.APPLIED, Verdict.DUPLICATE, Verdict.CONFLICT]


async def test_a_past_attempt_is_stale(http: HttpReplies, orchestrated: Served) -> None:
    given, to = orchestrated.directive, orchestrated.callback()
    await http.send(to, outgoing(result(given, ResultStatus.FAILED_RETRY)))
    past = given.model_copy(update={"lease_id": "0" * 32})
    answer = await http.send(orchestrated.callback(past), outgoing(ack(past)))
    assert answer.verdict is Verdict.STALE


async def test_a_job_that_is_gone_refuses(http: HttpReplies, orchestrated: Served) -> None:
    gone = orchestrated.directive.model_copy(update={"job_id": "job_" + "0" * 32})
    answer = await http.send(orchestrated.callback(gone), outgoing(ack(gone)))
    assert answer.verdict is Verdict.REFUSED
    assert "JOB_NOT_FOUND" in answer.detail


async def test_the_token_of_another_attempt_is_not_accepted(
    http: HttpReplies, orchestrated: Served
) -> None:
    other = orchestrated.directive.model_copy(update={"lease_id": "0" * 32})
    with pytest.raises(ReplyUnauthorised):
        await http.send(orchestrated.callback(other), outgoing(ack(orchestrated.directive)))
