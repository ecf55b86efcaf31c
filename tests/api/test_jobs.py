"""Reading jobs, steps and events."""

import json
from datetime import timedelta, timezone
from typing import Any

import httpx
import pytest

from lucius_contract.documents import Ref
from lucius_contract.messages import ResultStatus
from lucius_contract.states import JobState
from lucius_orchestrator.api import ApiLimits
from tests.api.stage import Stage, code, pointers
from tests.engine.plane import (
    ARTIFACT,
    PIPELINE,
    SECRET,
    TRACE,
    Plane,
    ack,
    heartbeat,
    request,
    result,
)


async def items(stage: Stage, path: str, caller: str = "ada", **query: Any) -> list[str]:
    """The ids on all pages."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        asked = query | ({"cursor": cursor} if cursor else {})
        page = (await stage.get(path, caller, params=asked)).json()
        found += [item.get("jobId") for item in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            return found


async def test_a_job_is_shown_with_its_state_its_status_and_its_steps(stage: Stage) -> None:
    job_id = await stage.submitted(
        doc_id="d-1", correlation_id="c-1", traceparent=TRACE, **PIPELINE
    )
    job = (await stage.get(f"/v1/jobs/{job_id}")).json()
    assert (job["jobId"], job["tenant_id"], job["doc_id"]) == (job_id, "acme", "d-1")
    assert (job["state"], job["status"]) == (stage.plane.new_state, "QUEUED")
    assert (job["mode"], job["lane"], job["routing_key_used"]) == ("DEFAULT", 14, "acme")
    assert (job["correlation_id"], job["traceparent"]) == ("c-1", TRACE)
    assert job["created_at"] == stage.moment()
    await stage.plane.dispatch()
    job = (await stage.get(f"/v1/jobs/{job_id}")).json()
    assert [(s["stepId"], s["state"], s["status"]) for s in job["steps"]] == [
        ("step_01", "AWAITING_ACK", "INITIATED"),
        ("step_02", "PENDING", "PENDING"),
        ("step_03", "PENDING", "PENDING"),
    ]


async def test_a_step_shows_the_history_of_its_attempts(stage: Stage) -> None:
    job_id = await stage.submitted()
    first = await stage.plane.directive()
    await stage.plane.reply(ack(first))
    await stage.plane.reply(heartbeat(first, 0.5))
    await stage.plane.reply(result(first, ResultStatus.FAILED_RETRY))
    (step,) = (await stage.get(f"/v1/jobs/{job_id}/steps")).json()["items"]
    (attempt,) = step["attempts"]
    assert (step["state"], step["progress"]) == ("FAILED_RETRY", {"fraction": 0.5})
    assert step["next_attempt_at"] is not None
    assert step["error"] == {"code": "ocr.BROKEN", "message": "it broke"}
    assert (attempt["attempt_no"], attempt["lane"], attempt["mode"]) == (1, 14, "DEFAULT")
    assert (attempt["outcome"], attempt["ended_by"]) == ("FAILED_RETRY", "RESULT_RETRYABLE")
    assert attempt["error"] == {"code": "ocr.BROKEN", "message": "it broke"}
    for moment in ("dispatched_at", "sent_at", "acknowledged_at", "completed_at"):
        assert attempt[moment] == stage.moment()


async def test_an_ended_job_shows_what_came_of_it(stage: Stage) -> None:
    job_id = await stage.submitted()
    given = await stage.plane.directive()
    await stage.plane.reply(
        result(given, artifacts=[ARTIFACT], output_ref=Ref(uri="az://outbox/a.json"))
    )
    job = (await stage.get(f"/v1/jobs/{job_id}")).json()
    assert (job["state"], job["final_output"]) == ("SUCCEEDED", "az://outbox/a.json")
    assert job["steps"][0]["artifacts"] == [ARTIFACT]
    assert job["steps"][0]["result_ref"] == {"uri": "az://outbox/a.json"}


async def test_no_read_shows_a_lease_a_payload_or_a_webhook(stage: Stage) -> None:
    """The payload of the request holds a secret."""
    hook = "https://allowed.example/hook"
    job_id = await stage.submitted(callback_urls=[hook])
    given = await stage.plane.directive()
    await stage.plane.reply(result(given, ResultStatus.FAILED_FINAL))
    await stage.plane.reply(ack(given))
    for path in ("", "/steps", "/events", "/stream"):
        text = (await stage.get(f"/v1/jobs/{job_id}{path}")).text
        assert not any(secret in text for secret in (given.lease_id, SECRET, hook)), path
    for path in ("/v1/jobs", "/v1/dead-letters"):
        text = (await stage.get(path)).text
        assert job_id in text
        assert not any(secret in text for secret in (given.lease_id, SECRET, hook)), path


async def test_a_read_of_what_the_client_has_is_not_modified(stage: Stage) -> None:
    job_id = await stage.submitted()
    for path in (f"/v1/jobs/{job_id}", f"/v1/jobs/{job_id}/steps"):
        tag = (await stage.get(path)).headers["etag"]
        for known in (tag, f'"other", W/{tag}', "*"):
            answer = await stage.get(path, headers={"If-None-Match": known})
            assert (answer.status_code, answer.content) == (304, b"")
            assert answer.headers["etag"] == tag
        assert (await stage.get(path, headers={"If-None-Match": '"other"'})).status_code == 200


async def test_every_change_of_a_job_changes_its_tag(stage: Stage) -> None:
    given = await stage.plane.working(request())
    path = f"/v1/jobs/{given.job_id}"
    tags = {(await stage.get(path)).headers["etag"]}
    for fraction in (0.1, 0.2):
        await stage.plane.reply(heartbeat(given, fraction))
        answer = await stage.get(path, headers={"If-None-Match": tags.copy().pop()})
        assert answer.status_code == 200
        tags.add(answer.headers["etag"])
    assert len(tags) == 3


async def test_jobs_are_listed_newest_first_in_pages(stage: Stage) -> None:
    made = []
    for number in range(5):
        stage.plane.later(seconds=1)
        made.append(await stage.submitted(idempotency_key=str(number)))
    assert await items(stage, "/v1/jobs", limit=2) == made[::-1]
    assert await items(stage, "/v1/jobs", tenant="acme") == made[::-1]


async def test_a_list_can_be_narrowed(stage: Stage) -> None:
    old = await stage.submitted()
    stage.plane.later(minutes=5)
    new = await stage.submitted(**PIPELINE)
    await stage.plane.dispatch()
    elsewhere = (stage.plane.clock() - timedelta(minutes=1)).astimezone(
        timezone(timedelta(hours=1))
    )
    await stage.post(f"/v1/jobs/{new}:cancel")
    narrowed = {
        ("state", "CANCELLING"): [new],
        ("state", "DISPATCHING"): [old],
        ("request_type", "OCR"): [old],
        ("request_type", "OCR→EMBEDDING→SIS"): [new],
        ("request_type", "NOBODY→KNOWS"): [],
        ("since", stage.moment(minutes=-1)): [new],
        ("since", elsewhere.isoformat()): [new],
        ("since", stage.moment(hours=1)): [],
    }
    for (name, value), found in narrowed.items():
        assert await items(stage, "/v1/jobs", **{name: value}) == found, (name, value)


async def test_a_list_since_ever_is_the_whole_list(plane: Plane) -> None:
    stage = Stage(plane)
    job_id = await stage.submitted()
    assert await items(stage, "/v1/jobs", since="0001-01-01T00:00:00Z") == [job_id]
    assert await items(stage, "/v1/jobs", since="9999-12-31T23:59:59Z") == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("state", "RUNNING"),
        ("since", "yesterday"),
        ("since", "2026-01-27T10:00:00"),
        ("limit", "0"),
        ("limit", "many"),
        ("cursor", "bogus"),
        ("cursor", ""),
        ("tenant", ""),
        ("tenant", "a\x00b"),
        ("request_type", "\x00"),
    ],
)
async def test_a_list_that_cannot_be_asked_for_says_what_is_wrong(
    stage: Stage, name: str, value: str
) -> None:
    answer = await stage.get("/v1/jobs", params={name: value})
    assert code(answer) == (400, "ENVELOPE_INVALID")
    assert pointers(answer) == [f"/query/{name}"]


async def test_a_page_is_no_larger_than_the_server_likes(stage: Stage) -> None:
    small = Stage(stage.plane, ApiLimits(max_page=2))
    for number in range(3):
        await small.submitted(idempotency_key=str(number))
    assert len((await small.get("/v1/jobs?limit=100")).json()["items"]) == 2


async def test_events_are_told_oldest_first_in_pages(stage: Stage) -> None:
    given = await stage.plane.succeeded()
    path = f"/v1/jobs/{given.job_id}/events"
    whole = (await stage.get(path)).json()
    assert [event["seq"] for event in whole["items"]] == list(range(1, len(whole["items"]) + 1))
    assert whole["next_cursor"] is None
    found, cursor = [], "0"
    while cursor:
        page = (await stage.get(path, params={"cursor": cursor, "limit": 2})).json()
        found += page["items"]
        cursor = page["next_cursor"]
    assert found == whole["items"]
    assert [(e["before"], e["after"]) for e in found if e["type"] == "JOB_STATE_CHANGED"] == [
        ("QUEUED", "DISPATCHING"),
        ("DISPATCHING", "IN_PROGRESS"),
        ("IN_PROGRESS", "SUCCEEDED"),
    ]


@pytest.mark.parametrize("cursor", ["-1", "x", "1.5", str(2**63)])
async def test_events_after_what_is_no_event_cannot_be_asked_for(stage: Stage, cursor: str) -> None:
    job_id = await stage.submitted()
    answer = await stage.get(f"/v1/jobs/{job_id}/events", params={"cursor": cursor})
    assert code(answer) == (400, "ENVELOPE_INVALID")
    assert pointers(answer) == ["/query/cursor"]


async def test_dead_letters_are_listed_by_kind_and_code(stage: Stage) -> None:
    first = await stage.plane.failed(request(idempotency_key="1"))
    stage.plane.later(seconds=1)
    second = await stage.plane.failed(request(idempotency_key="2"))
    listed = await items(stage, "/v1/dead-letters", limit=1)
    assert list(dict.fromkeys(listed)) == [second, first]
    assert await items(stage, "/v1/dead-letters", code="other") == []
    (letter, *_) = (await stage.get("/v1/dead-letters?kind=STEP")).json()["items"]
    assert (letter["jobId"], letter["stepId"], letter["attempt_no"]) == (second, "step_01", 1)
    assert (letter["code"], letter["message"]) == ("ocr.BROKEN", "it broke")
    assert letter["redriven_by"] is None
    assert code(await stage.get("/v1/dead-letters?kind=X")) == (400, "ENVELOPE_INVALID")
    assert code(await stage.get("/v1/dead-letters?cursor=X")) == (400, "ENVELOPE_INVALID")


async def test_a_job_id_that_cannot_be_one_is_not_found(stage: Stage) -> None:
    for odd in ("job_%00", "a%20b", "x" * 200, "%C3%A4"):
        assert code(await stage.get(f"/v1/jobs/{odd}")) == (404, "JOB_NOT_FOUND")


async def test_protocols_say_what_a_payload_must_look_like(stage: Stage) -> None:
    listed = (await stage.get("/v1/protocols")).json()
    assert [p["protocol_id"] for p in listed["items"]] == sorted(stage.registry.current.protocols)
    protocol = (await stage.get("/v1/protocols/ocr")).json()
    assert protocol in listed["items"]
    (step,) = protocol["steps"]
    assert (step["step_type"], step["service"], step["payload_key"]) == ("OCR", "ocr", "ocr")
    assert step["payload_schema"]["properties"]["dpi"]["minimum"] == 72
    assert step["lease_seconds"] == 900
    assert code(await stage.get("/v1/protocols/nothing")) == (404, "NOT_FOUND")


COMMANDS = {
    "pause": ("PAUSING", "IN_PROGRESS"),
    "cancel": ("CANCELLING", "IN_PROGRESS"),
    "resume": ("DISPATCHING", "QUEUED"),
}


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_command_is_answered_with_how_the_job_stands_then(
    stage: Stage, command: str
) -> None:
    job_id = await stage.submitted()
    await stage.plane.dispatch()
    answer = await stage.post(f"/v1/jobs/{job_id}:{command}")
    body = answer.json()
    assert answer.status_code == 200
    assert (body["jobId"], body["state"], body["status"]) == (job_id, *COMMANDS[command])
    assert body["links"]["self"] == f"/v1/jobs/{job_id}"


async def test_a_command_is_recorded_with_who_gave_it(stage: Stage) -> None:
    job_id = await stage.submitted()
    await stage.plane.dispatch()
    await stage.post(f"/v1/jobs/{job_id}:pause")
    events = (await stage.get(f"/v1/jobs/{job_id}/events")).json()["items"]
    assert (events[-1]["after"], events[-1]["by"]) == ("PAUSING", "ada")


async def test_a_command_that_the_state_does_not_allow_conflicts(stage: Stage) -> None:
    given = await stage.plane.succeeded()
    for command in ("cancel", "pause", "resume", "redrive"):
        answer = await stage.post(f"/v1/jobs/{given.job_id}:{command}")
        assert code(answer) == (409, "STATE_CONFLICT"), command


async def redriven(stage: Stage, job_id: str, **headers: str) -> httpx.Response:
    return await stage.post(f"/v1/jobs/{job_id}:redrive", headers=headers)


async def test_a_redrive_makes_one_new_job_and_marks_the_dead_letters(stage: Stage) -> None:
    failed = await stage.plane.failed()
    answer = await redriven(stage, failed)
    new = answer.json()["jobId"]
    assert (answer.status_code, answer.json()["duplicate"]) == (202, False)
    assert answer.headers["location"] == f"/v1/jobs/{new}"
    assert (await redriven(stage, failed)).json() == {**answer.json(), "duplicate": True}
    assert (await stage.get(f"/v1/jobs/{new}")).json()["redrive_of"] == failed
    assert (await stage.plane.job(failed)).state is JobState.FAILED_FINAL
    letters = (await stage.get("/v1/dead-letters")).json()["items"]
    assert {letter["redriven_by"] for letter in letters} == {new}


async def test_a_redrive_with_another_key_makes_another_job(stage: Stage) -> None:
    failed = await stage.plane.failed()
    first = await redriven(stage, failed)
    other = await redriven(stage, failed, **{"Idempotency-Key": "again"})
    assert other.json()["jobId"] != first.json()["jobId"]
    assert (await redriven(stage, failed, **{"Idempotency-Key": "again"})).json()["duplicate"]


async def test_a_stored_job_is_a_json_document_whatever_it_holds(stage: Stage) -> None:
    job_id = await stage.submitted("root", tenant_id='a"b\\ü→', doc_id="d" * 512)
    answer = await stage.get(f"/v1/jobs/{job_id}", "root")
    assert json.loads(answer.content)["tenant_id"] == 'a"b\\ü→'
    listed = await items(stage, "/v1/jobs", "root", tenant='a"b\\ü→')
    assert listed == [job_id]


async def test_the_times_of_a_job_are_in_utc(stage: Stage) -> None:
    job_id = await stage.submitted()
    job = (await stage.get(f"/v1/jobs/{job_id}")).json()
    made = stage.plane.clock()
    assert job["sla_deadline"] == (made + timedelta(hours=24)).isoformat().replace("+00:00", "Z")
