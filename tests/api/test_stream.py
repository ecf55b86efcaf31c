"""The events of a job as they happen."""

import asyncio
import json
from datetime import timedelta
from typing import Any, NamedTuple

import pytest

from lucius_contract.messages import Directive
from lucius_orchestrator.api import ApiLimits
from lucius_orchestrator.domain.decision import AuditEvent
from lucius_orchestrator.ports.ledger import LedgerUnavailable
from tests.api.serving import head, served, wire
from tests.api.stage import Stage, code
from tests.engine.plane import Plane, ack, once, request, result
from tests.runner.deadlines import DEADLINE


class Told(NamedTuple):
    id: int
    event: str
    data: dict[str, Any]


def told(text: str) -> list[Told]:
    """The messages of a stream, comments left out."""
    found = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            fields = dict(line.split(": ", 1) for line in lines)
            found.append(Told(int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


async def read(stage: Stage, job_id: str, last: int | str | None = None) -> list[Told]:
    headers = {} if last is None else {"Last-Event-ID": str(last)}
    async with asyncio.timeout(DEADLINE):
        answer = await stage.get(f"/v1/jobs/{job_id}/stream", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    return told(answer.text)


async def history(stage: Stage, job_id: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = (await stage.get(f"/v1/jobs/{job_id}/events")).json()["items"]
    return listed


async def test_a_stream_begins_with_a_snapshot_and_ends_with_the_job(stage: Stage) -> None:
    given = await stage.plane.working()
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(read(stage, given.job_id))
        await stage.plane.detour.called("events")
        await stage.plane.reply(result(given))
    first, *rest = reading.result()
    assert (first.event, first.data["state"]) == ("snapshot", "IN_PROGRESS")
    assert first.data["steps"][0]["state"] == "IN_PROGRESS"
    assert [event.data for event in rest] == (await history(stage, given.job_id))[first.id :]
    assert [event.id for event in rest] == [event.data["seq"] for event in rest]
    assert rest[-1].data["after"] == "SUCCEEDED"


@pytest.mark.parametrize("last", [0, 1, 3])
async def test_a_client_that_comes_back_misses_nothing(stage: Stage, last: int) -> None:
    given = await stage.plane.succeeded()
    events = await read(stage, given.job_id, last)
    assert [event.event for event in events] == ["event"] * len(events)
    assert [event.data for event in events] == (await history(stage, given.job_id))[last:]


async def test_who_knows_all_of_an_ended_job_is_sent_away(stage: Stage) -> None:
    given = await stage.plane.succeeded()
    path = f"/v1/jobs/{given.job_id}/stream"
    last = len(await history(stage, given.job_id))
    answer = await stage.get(path, headers={"Last-Event-ID": str(last)})
    assert (answer.status_code, answer.content) == (204, b"")
    await stage.plane.reply(ack(given))
    (late,) = await read(stage, given.job_id, last)
    assert late.data["type"] == "REPLY_IGNORED"


async def test_an_ended_job_is_told_as_a_snapshot(stage: Stage) -> None:
    given = await stage.plane.succeeded()
    (only,) = await read(stage, given.job_id)
    assert (only.event, only.data["state"]) == ("snapshot", "SUCCEEDED")
    assert only.id == only.data["seq"]


@pytest.mark.parametrize("last", [99, "x", "", "-1", "1.5", "9" * 30, "²"])
async def test_what_is_no_id_of_an_event_begins_with_a_snapshot(
    stage: Stage, last: int | str
) -> None:
    given = await stage.plane.succeeded()
    headers = {b"Last-Event-ID": str(last).encode()}
    answer = await stage.get(f"/v1/jobs/{given.job_id}/stream", headers=headers)
    assert [event.event for event in told(answer.text)] == ["snapshot"]


@pytest.mark.parametrize("missing", [1, 99])
async def test_a_resume_past_what_is_kept_begins_with_a_snapshot(
    stage: Stage, missing: int
) -> None:
    given = await stage.plane.succeeded()
    whole = await stage.plane.ledger.events(given.job_id, 0)

    class Forgetful:
        """The ledger, once retention has taken the beginning of a job's history."""

        async def events(self, _: str, after: int, limit: int) -> list[AuditEvent]:
            return [event for event in whole if event.seq > max(after, missing)][:limit]

        def __getattr__(self, verb: str) -> Any:
            return getattr(stage.plane.ledger, verb)

    stage.plane.engine.ledger = Forgetful()  # type: ignore[assignment]
    events = await read(Stage(stage.plane), given.job_id, 0)
    assert [event.event for event in events] == ["snapshot"]


async def test_a_long_history_is_told_to_its_end(stage: Stage) -> None:
    job_id = await stage.submitted()
    for _ in range(60):
        await stage.plane.engine.pause(job_id)
        await stage.plane.engine.resume(job_id)
    given = await stage.plane.directive()
    await stage.plane.reply(result(given))
    events = await read(stage, job_id, 0)
    seqs = [event.id for event in events]
    assert len(seqs) > 100
    assert seqs == list(range(1, len(seqs) + 1))


async def test_what_the_end_of_a_job_does_to_its_steps_is_told_too(stage: Stage) -> None:
    job_id = await stage.submitted(
        request_type="OCR_EMBEDDING", payload={"ocr": {}, "embedding": {}}
    )
    given: Directive = await stage.plane.directive()
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(read(stage, job_id))
        await stage.plane.detour.called("events")
        await stage.plane.engine.cancel(job_id)
        await stage.plane.reply(result(given))
    events = reading.result()
    assert events[-1].id == (await stage.plane.job(job_id)).seq
    assert {event.data.get("after") for event in events} >= {"CANCELLED"}


async def test_a_stream_ends_when_the_ledger_is_away(stage: Stage) -> None:
    given = await stage.plane.working()

    async def away(*_: Any) -> None:
        raise LedgerUnavailable("away")

    stage.plane.detour.before["events"] = away
    assert [event.event for event in await read(stage, given.job_id)] == ["snapshot"]
    stage.plane.detour.fail("load")
    answer = await stage.get(f"/v1/jobs/{given.job_id}/stream")
    assert code(answer) == (503, "UNAVAILABLE")


async def test_streams_end_when_the_server_stops(stage: Stage) -> None:
    given = await stage.plane.working()
    async with asyncio.TaskGroup() as tasks:
        reading = tasks.create_task(read(stage, given.job_id))
        await stage.plane.detour.called("events")
        stage.app.state.stopping.set()
    assert [event.event for event in reading.result()] == ["snapshot"]


async def test_an_error_in_the_middle_breaks_the_stream_off(plane: Plane) -> None:
    """Half a stream must not look like a whole one."""
    given = await plane.working()
    fails = once(lambda *_: _broken())
    async with served(Stage(plane).app) as port, wire(port) as client:
        plane.detour.before["events"] = fails
        client.send(head("GET", f"/v1/jobs/{given.job_id}/stream"))
        text = await client.rest()
    assert b"event: snapshot" in text
    assert not text.endswith(b"0\r\n\r\n")


async def _broken() -> None:
    raise RuntimeError("a defect")


async def test_a_quiet_stream_shows_that_it_is_there(plane: Plane) -> None:
    given = await plane.working()
    async with served(Stage(plane).app) as port, wire(port) as client:
        client.send(head("GET", f"/v1/jobs/{given.job_id}/stream"))
        assert b"text/event-stream" in await client.until(b"\r\n\r\n")
        await client.until(b"event: snapshot\n")
        await client.until(b": still here\n\n")
        await plane.reply(result(given))
        text = await client.until(b"0\r\n\r\n")
    assert b'"after":"SUCCEEDED"' in text


async def test_a_client_that_leaves_ends_the_looking(plane: Plane) -> None:
    """Were the stream still there, the ledger would be asked again and again."""
    given = await plane.working()
    limits = ApiLimits(stream_interval=timedelta(milliseconds=1))
    stage = Stage(plane, limits)
    async with served(stage.app) as port:
        async with wire(port) as client:
            client.send(head("GET", f"/v1/jobs/{given.job_id}/stream"))
            await client.until(b"event: snapshot\n")
            await plane.detour.called("events", times=3)
        async with asyncio.timeout(DEADLINE):
            while any(map(_serves, asyncio.all_tasks())):
                await asyncio.sleep(0)
        asked = plane.detour.calls["events"]
        await (await stage.plane.replica()).submit(request(payload={"dpi": 72}))
        assert plane.detour.calls["events"] == asked


def _serves(task: "asyncio.Task[object]") -> bool:
    """Whether the server answers a request in it; a control plane has tasks that come and go."""
    return "run_asgi" in repr(task.get_coro())


async def test_two_clients_follow_one_job(stage: Stage) -> None:
    given = await stage.plane.working()
    async with asyncio.TaskGroup() as tasks:
        readings = [tasks.create_task(read(stage, given.job_id)) for _ in range(2)]
        await stage.plane.detour.called("events", times=2)
        await stage.plane.reply(result(given))
    first, second = (reading.result() for reading in readings)
    assert first == second
