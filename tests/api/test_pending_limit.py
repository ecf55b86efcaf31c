"""No further job begins where too many directives of its service wait already."""

import pytest

from lucius_contract.routing import lane_of
from lucius_orchestrator.engine.backlogs import PendingLimit
from tests.api.stage import FOREIGN, Stage, code
from tests.engine.plane import TENANT, request

LIMIT = 3


@pytest.fixture
async def full(stage: Stage) -> Stage:
    """As many directives wait as may, and that is known."""
    for number in range(LIMIT):
        await stage.submitted(idempotency_key=str(number))
    await limit(stage, LIMIT)
    return stage


async def limit(stage: Stage, most: int, rate: float = 0.0) -> None:
    """Of each service and lane, where each service finishes so many in a second."""
    stage.plane.engine.pending_limit = PendingLimit(stage.backlogs, lambda _: rate, most)
    await count(stage)


async def count(stage: Stage) -> None:
    """As the gauges do every few seconds."""
    stage.plane.later(seconds=3)
    await stage.backlogs.read()


async def test_a_request_for_a_full_lane_is_refused_with_what_is_full(full: Stage) -> None:
    answer = await full.submit(idempotency_key="another")
    assert code(answer) == (429, "LANE_SATURATED")
    lane = lane_of(TENANT)
    assert answer.json()["detail"] == (
        f"3 directives of the service ocr wait in lane {lane}, which takes 3"
    )
    assert answer.headers["retry-after"] == "5"
    jobs = (await full.get("/v1/jobs")).json()["items"]
    assert len(jobs) == LIMIT


async def test_one_below_the_limit_is_accepted(full: Stage) -> None:
    await limit(full, LIMIT + 1)
    assert (await full.submit(idempotency_key="another")).status_code == 202


async def test_other_lanes_and_other_services_are_not_full(full: Stage) -> None:
    assert lane_of(FOREIGN) != lane_of(TENANT)
    assert (await full.submit("mallory", tenant_id=FOREIGN)).status_code == 202
    other = await full.submit(request_type="EMBEDDING", payload={})
    assert other.status_code == 202, other.text


async def test_a_request_that_was_accepted_before_is_answered_all_the_same(full: Stage) -> None:
    again = await full.submit(idempotency_key="1")
    assert (again.status_code, again.json()["duplicate"]) == (202, True)
    other = await full.submit(idempotency_key="1", output_ref={"uri": "az://outbox/other.json"})
    assert code(other) == (409, "IDEMPOTENCY_CONFLICT")


async def test_a_redrive_is_a_request_too(stage: Stage) -> None:
    job_id = await stage.plane.failed(request(idempotency_key="failed"))
    for number in range(LIMIT):
        await stage.submitted(idempotency_key=str(number))
    await limit(stage, LIMIT)
    path = f"/v1/jobs/{job_id}:redrive"
    assert code(await stage.post(path)) == (429, "LANE_SATURATED")
    await stage.plane.dispatch()
    await count(stage)
    redriven = await stage.post(path)
    assert (redriven.status_code, redriven.json()["duplicate"]) == (202, False)


async def test_a_lane_takes_more_when_fewer_wait(full: Stage) -> None:
    assert code(await full.submit(idempotency_key="another")) == (429, "LANE_SATURATED")
    await full.plane.dispatch()
    await count(full)
    assert (await full.submit(idempotency_key="another")).status_code == 202


async def test_what_was_counted_long_ago_refuses_nobody(full: Stage) -> None:
    full.plane.later(minutes=2)
    assert (await full.submit(idempotency_key="another")).status_code == 202


async def test_an_ordinary_request_costs_no_further_call(stage: Stage) -> None:
    await limit(stage, LIMIT)
    stage.plane.detour.calls.clear()
    await stage.submitted()
    assert stage.plane.detour.calls == {"create": 1}


@pytest.mark.parametrize(
    ("rate", "waiting", "seconds"),
    [(1.0, 12, "3"), (0.1, 12, "30"), (2.0, 10, "1"), (1e-9, 10, "3600")],
    ids=["work for seconds", "a slow service", "almost free", "at most an hour"],
)
async def test_a_client_is_told_to_come_back_when_there_is_room_at_the_measured_rate(
    stage: Stage, rate: float, waiting: int, seconds: str
) -> None:
    """There is room again where 90 % of the limit of 10 wait."""
    for number in range(waiting):
        await stage.submitted(idempotency_key=str(number))
    await limit(stage, 10, rate)
    refused = await stage.submit(idempotency_key="another")
    assert code(refused) == (429, "LANE_SATURATED")
    assert refused.headers["retry-after"] == seconds
