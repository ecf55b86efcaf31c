"""How services stand, as operators see it over HTTP."""

from typing import Any

import pytest

from lucius_contract.routing import lane_of
from lucius_orchestrator.sweepers.ack_timeout import AckTimeout
from tests.api.stage import FOREIGN, Stage, code, pointers
from tests.engine.plane import TENANT, ack, request, result

NAMED = ["embedding", "ocr", "sis"]
LANE, OTHER_LANE = lane_of(TENANT), lane_of(FOREIGN)
OF_BOTH = sorted([{"lane": LANE, "waiting": 2}, {"lane": OTHER_LANE, "waiting": 1}], key=str)


async def services(stage: Stage) -> dict[str, dict[str, Any]]:
    """When those that were read before do not count any more."""
    stage.plane.later(seconds=3)
    answer = await stage.get("/v1/services", "root")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["next_cursor"] is None
    return {item["service"]: item for item in body["items"]}


async def test_services_that_a_protocol_names_are_listed_before_they_have_work(
    stage: Stage,
) -> None:
    found = await services(stage)
    assert list(found) == NAMED
    assert found["ocr"] == {
        "service": "ocr",
        "presence": "UNKNOWN",
        "heard_at": None,
        "waiting": 0,
        "oldest_waiting_at": None,
        "oldest_waiting_seconds": None,
        "unacknowledged": 0,
        "working": 0,
        "window": 1000,
        "capacity": None,
        "instances": 0,
        "rate_per_second": 0.0,
        "has_backlog": False,
        "lanes": [],
    }


async def test_what_waits_is_counted_by_lane_with_the_age_of_the_oldest(stage: Stage) -> None:
    began = stage.moment()
    for asked in (
        request(),
        request(idempotency_key="second"),
        request(tenant_id=FOREIGN),
    ):
        await stage.plane.submit(asked)
    stage.plane.later(seconds=57)
    ocr = (await services(stage))["ocr"]
    assert (ocr["waiting"], ocr["oldest_waiting_at"]) == (3, began)
    assert ocr["oldest_waiting_seconds"] == 60.0
    assert sorted(ocr["lanes"], key=str) == OF_BOTH


async def test_what_is_with_a_service_is_counted_by_what_it_said_of_it(stage: Stage) -> None:
    plane = stage.plane
    await plane.submit(request(idempotency_key="sent"))
    await plane.dispatch()
    await plane.deliveries()
    await plane.working(request(idempotency_key="working"))
    await plane.succeeded(request(idempotency_key="done"))
    heard = stage.moment()
    ocr = (await services(stage))["ocr"]
    assert (ocr["waiting"], ocr["unacknowledged"], ocr["working"]) == (0, 1, 1)
    assert (ocr["presence"], ocr["heard_at"]) == ("PRESENT", heard)
    assert ocr["rate_per_second"] > 0


async def test_a_service_that_nothing_is_heard_from_is_absent_and_its_attempts_unanswered(
    stage: Stage,
) -> None:
    job_id = await stage.submitted()
    await stage.plane.dispatch()
    stage.plane.later(seconds=32)
    await stage.plane.sweep(AckTimeout)
    assert (await services(stage))["ocr"]["presence"] == "ABSENT"
    (step,) = (await stage.get(f"/v1/jobs/{job_id}/steps")).json()["items"]
    assert step["unanswered"] == 1
    assert [attempt["unanswered"] for attempt in step["attempts"]] == [True]
    (directive,) = await stage.plane.directives()
    await stage.reply(ack(directive))
    assert (await services(stage))["ocr"]["presence"] == "PRESENT"
    await stage.reply(result(directive))
    (step,) = (await stage.get(f"/v1/jobs/{job_id}")).json()["steps"]
    assert (step["unanswered"], step["attempts"][0]["unanswered"]) == (0, False)


async def test_directives_are_counted_once_for_all_who_ask_in_a_moment(stage: Stage) -> None:
    await stage.plane.submit()
    for _ in range(5):
        await stage.get("/v1/services", "root")
    assert stage.plane.detour.calls["backlogs"] == 1
    await services(stage)
    assert stage.plane.detour.calls["backlogs"] == 2


async def test_no_tenant_is_named(stage: Stage) -> None:
    await stage.plane.submit(request(tenant_id="a-tenant-of-its-own"))
    assert "a-tenant-of-its-own" not in (await stage.get("/v1/services", "root")).text


@pytest.mark.parametrize("caller", ["ada", "operator", "reader", "submitter"])
async def test_a_caller_with_some_tenants_does_not_see_how_much_others_submit(
    stage: Stage, caller: str
) -> None:
    assert code(await stage.get("/v1/services", caller)) == (403, "FORBIDDEN")


async def test_a_query_that_it_does_not_take_is_refused(stage: Stage) -> None:
    answer = await stage.get("/v1/services?service=ocr", "root")
    assert code(answer) == (400, "ENVELOPE_INVALID")
    assert pointers(answer) == ["/query/service"]


async def test_a_ledger_that_is_away_is_said(stage: Stage) -> None:
    stage.plane.detour.fail("backlogs")
    assert code(await stage.get("/v1/services", "root")) == (503, "UNAVAILABLE")
    stage.plane.detour.heal()
    assert (await stage.get("/v1/services", "root")).status_code == 200
