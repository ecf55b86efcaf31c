"""Replies of services over HTTP."""

from datetime import timedelta

import pytest

from lucius_contract.documents import Ref
from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import Directive, Message, ResultStatus
from lucius_contract.states import JobState, StepState
from tests.api.stage import Stage, code, pointers
from tests.engine.plane import OCR, ack, heartbeat, result


async def directive(stage: Stage) -> Directive:
    await stage.submitted()
    return await stage.plane.directive()


async def untouched(stage: Stage, directive: Directive) -> bool:
    """Whether no reply was seen by the engine."""
    return len(await stage.plane.ledger.events(directive.job_id, 0)) == 3


async def test_an_ack_is_applied_and_told_how_long_its_lease_lasts(stage: Stage) -> None:
    given = await directive(stage)
    answer = await stage.reply(ack(given))
    assert answer.status_code == 200
    assert answer.json() == {
        "verdict": "APPLIED",
        "lease_expires_at": stage.moment(minutes=15),
        "cancel_requested": False,
    }
    states = (JobState.IN_PROGRESS, StepState.IN_PROGRESS)
    assert await stage.plane.states(given.job_id) == states


async def test_a_result_ends_the_job_and_again_is_a_duplicate(stage: Stage) -> None:
    given = await directive(stage)
    assert (await stage.reply(result(given))).json()["verdict"] == "APPLIED"
    again = await stage.reply(result(given))
    assert (again.status_code, again.json()["verdict"]) == (200, "DUPLICATE")
    assert (await stage.plane.job(given.job_id)).state is JobState.SUCCEEDED


async def test_a_result_with_other_content_conflicts(stage: Stage) -> None:
    given = await directive(stage)
    await stage.reply(result(given))
    answer = await stage.reply(result(given, output_ref=Ref(uri="az://x/y")))
    assert code(answer) == (409, "RESULT_CONFLICT")


async def test_a_heartbeat_hears_that_cancel_was_requested(stage: Stage) -> None:
    given = await directive(stage)
    await stage.reply(ack(given))
    await stage.post(f"/v1/jobs/{given.job_id}:cancel")
    stage.plane.later(minutes=1)
    answer = (await stage.reply(heartbeat(given, 0.5))).json()
    assert answer["cancel_requested"] is True
    assert answer["lease_expires_at"] == stage.moment(minutes=15)


async def test_a_reply_of_a_past_attempt_is_stale_and_recorded(stage: Stage) -> None:
    given = await directive(stage)
    await stage.reply(result(given, ResultStatus.FAILED_RETRY))
    stale = given.model_copy(update={"lease_id": "0" * 32})
    answer = await stage.reply(ack(stale))
    assert code(answer) == (409, "STALE_ATTEMPT")
    assert (await stage.plane.ledger.events(given.job_id, 0))[-1].detail == "STALE_ATTEMPT"


async def test_a_reply_to_a_job_that_is_gone_is_not_found(stage: Stage) -> None:
    given = await directive(stage)
    gone = given.model_copy(update={"job_id": "job_" + "0" * 32})
    assert code(await stage.reply(ack(gone))) == (404, "JOB_NOT_FOUND")


async def test_a_reply_in_the_name_of_another_tenant_is_not_found(stage: Stage) -> None:
    given = await directive(stage)
    other = given.model_copy(update={"tenant_id": "globex"})
    assert code(await stage.reply(ack(other))) == (404, "JOB_NOT_FOUND")
    assert await stage.plane.states(given.job_id) == (
        JobState.DISPATCHING,
        StepState.AWAITING_ACK,
    )


@pytest.mark.parametrize(
    "change",
    [
        {"job_id": "job_" + "0" * 32},
        {"step_id": "step_02"},
        {"attempt_no": 2},
        {"lease_id": "0" * 32},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_token_is_good_for_its_own_attempt_alone(
    stage: Stage, change: dict[str, str | int]
) -> None:
    given = await directive(stage)
    other: Message = given.model_copy(update=change)
    assert code(await stage.reply(result(given), attempt=other)) == (403, "FORBIDDEN")
    assert await untouched(stage, given)


@pytest.mark.parametrize("token", [None, "", "nonsense", "ada"])
async def test_without_a_token_of_ours_nobody_replies(stage: Stage, token: str | None) -> None:
    given = await directive(stage)
    answer = await stage.post("/v1/callbacks/ack", token, content=ack(given).to_bytes())
    assert code(answer) == (401, "UNAUTHENTICATED")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert await untouched(stage, given)


async def test_a_token_that_is_not_sent_as_bearer_does_not_count(stage: Stage) -> None:
    given = await directive(stage)
    token = stage.tokens.issue(
        given.job_id, given.step_id, 1, given.lease_id, stage.plane.clock() + timedelta(days=1)
    )
    headers = {"Authorization": f"Basic {token}"}
    answer = await stage.post(
        "/v1/callbacks/ack", None, content=ack(given).to_bytes(), headers=headers
    )
    assert code(answer) == (401, "UNAUTHENTICATED")


async def test_an_api_key_opens_no_callback_and_a_callback_token_no_api(stage: Stage) -> None:
    given = await directive(stage)
    token = stage.tokens.issue(
        given.job_id, given.step_id, 1, given.lease_id, stage.plane.clock() + timedelta(days=1)
    )
    assert code(await stage.get(f"/v1/jobs/{given.job_id}", token)) == (401, "UNAUTHENTICATED")
    answer = await stage.post("/v1/callbacks/ack", "root", content=ack(given).to_bytes())
    assert code(answer) == (401, "UNAUTHENTICATED")


@pytest.mark.parametrize("path", ["ack", "result", "heartbeat"])
async def test_an_address_takes_one_type_of_reply(stage: Stage, path: str) -> None:
    given = await directive(stage)
    for reply in (ack(given), result(given), heartbeat(given)):
        if reply.type.lower() == path:
            continue
        answer = await stage.post(f"/v1/callbacks/{path}", content=reply.to_bytes())
        assert code(answer) == (400, "ENVELOPE_INVALID")
        assert pointers(answer) == ["/type"]
    assert await untouched(stage, given)


async def test_what_is_not_a_reply_is_refused(stage: Stage) -> None:
    for raw in (b"", b"{}", b'{"type": "DIRECTIVE"}', b'{"type": "ACK"}'):
        answer = await stage.post("/v1/callbacks/ack", content=raw)
        assert code(answer) == (400, "ENVELOPE_INVALID")


async def test_a_reply_over_its_limit_is_refused_although_requests_may_be_larger(
    stage: Stage,
) -> None:
    given = await directive(stage)
    large = result(given).model_copy(update={"note": "x" * 65536})
    assert code(await stage.reply(large)) == (413, "TOO_LARGE")
    allowed = await stage.post("/v1/orchestrate", json=OCR | {"note": "x" * 65536})
    assert allowed.status_code == 202


async def test_a_reply_while_the_ledger_is_away_is_to_be_sent_again(stage: Stage) -> None:
    given = await directive(stage)
    stage.plane.detour.fail("commit")
    answer = await stage.reply(result(given))
    assert code(answer) == (503, "UNAVAILABLE")
    assert answer.headers["retry-after"] == "5"
    stage.plane.detour.heal()
    assert (await stage.reply(result(given))).json()["verdict"] == "APPLIED"


async def test_a_job_that_changes_too_fast_is_to_be_tried_again(stage: Stage) -> None:
    given = await directive(stage)
    away = ContractError(ErrorCode.UNAVAILABLE, "too fast")
    stage.plane.detour.fail("commit", error=away)
    answer = await stage.reply(ack(given))
    assert code(answer) == (503, "UNAVAILABLE")
    assert answer.headers["retry-after"] == "5"
