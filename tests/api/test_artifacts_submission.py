"""Jobs that read and write artifacts: what they read is held for them until they have ended."""

from datetime import timedelta
from typing import Any

import pytest

from lucius_orchestrator.ports.ledger import LedgerUnavailable
from lucius_orchestrator.ports.registry import TenantConfig
from tests.api.artifact_stage import ArtifactStage, digest_of
from tests.api.stage import FOREIGN, OFF, Stage, code, pointers
from tests.engine.plane import ack, configured, request, result

CONTENT = b"ten bytes!"
LONG = timedelta(days=400)


async def held(stage: ArtifactStage) -> set[str]:
    holds = await stage.rows.read(lambda rows: rows.held_jobs(None, 100))
    return {hold.job_id for hold in holds}


def reads(uri: str) -> dict[str, Any]:
    return {"input_ref": {"uri": uri}}


async def end(stage: ArtifactStage, job_id: str) -> None:
    directive = await stage.plane.directive("ocr")
    assert directive.job_id == job_id
    await stage.plane.reply(ack(directive))
    await stage.plane.reply(result(directive))


async def test_what_a_job_reads_is_held_for_it_until_it_has_ended(
    artifacts: ArtifactStage,
) -> None:
    uri = await artifacts.published("letters", CONTENT)
    job_id = await artifacts.submitted(**reads(uri))
    assert await held(artifacts) == {job_id}
    await artifacts.run()
    assert await held(artifacts) == {job_id}
    await end(artifacts, job_id)
    assert (await artifacts.run()).json()["report"]["released_jobs"] == 1
    assert await held(artifacts) == set()


async def test_content_by_its_digest_can_be_read_too(artifacts: ArtifactStage) -> None:
    job_id = await artifacts.submitted(**reads(await artifacts.uploaded(CONTENT)))
    assert await held(artifacts) == {job_id}


async def test_a_job_reads_a_version_that_was_tombstoned_after_it_was_submitted(
    artifacts: ArtifactStage,
) -> None:
    uri = await artifacts.published("letters", CONTENT)
    job_id = await artifacts.submitted(**reads(uri))
    await artifacts.tombstone("letters", 1, retention=0)
    assert code(await artifacts.located(uri)) == (410, "ARTIFACT_GONE")
    for _ in range(3):
        artifacts.plane.later(LONG)
        assert (await artifacts.run()).json()["report"]["deleted"] == 0
    assert await artifacts.read(uri, job_id=job_id) == CONTENT
    assert code(await artifacts.located(uri, job_id="job_2")) == (410, "ARTIFACT_GONE")


async def test_an_input_that_cannot_be_read_is_refused_and_no_job_is_made(
    artifacts: ArtifactStage,
) -> None:
    await artifacts.published("letters", CONTENT)
    await artifacts.published("gone", CONTENT)
    await artifacts.tombstone("gone", 1)
    theirs = await artifacts.published("theirs", b"other", "mallory", FOREIGN)
    wrong = [
        "artifact://letters/v2/files/0.txt",
        "artifact://letters/v1/none",
        "artifact://letters",
        "artifact://letters/1",
        "artifact://gone/v1/files/0.txt",
        f"artifact://blobs/{digest_of(b'other')}",
        "artifact://blobs/abc",
        theirs,
    ]
    for uri in wrong:
        answer = await artifacts.submit(**reads(uri))
        assert code(answer) == (422, "REF_INVALID"), uri
        assert pointers(answer) == ["/input_ref/uri"]
    assert (await artifacts.get("/v1/jobs")).json()["items"] == []
    assert await held(artifacts) == set()


async def test_an_output_is_an_artifact_and_no_version_of_it(artifacts: ArtifactStage) -> None:
    good = await artifacts.submit(output_ref={"uri": "artifact://letters"})
    assert good.status_code == 202
    for uri in ("artifact://letters/v1/a", "artifact://blobs", f"artifact://blobs/{'a' * 64}"):
        answer = await artifacts.submit(output_ref={"uri": uri})
        assert code(answer) == (422, "REF_INVALID"), uri
        assert pointers(answer) == ["/output_ref/uri"]


async def test_where_artifacts_are_off_no_ref_may_name_one(stage: Stage) -> None:
    for ref in ("input_ref", "output_ref"):
        named: dict[str, Any] = {ref: {"uri": "artifact://letters"}}
        answer = await stage.submit(**named)
        assert code(answer) == (422, "REF_INVALID")
        assert answer.json()["errors"] == [{"pointer": f"/{ref}/uri", "message": OFF}]


async def test_a_request_that_comes_again_is_the_same_job_also_when_its_input_is_gone(
    artifacts: ArtifactStage,
) -> None:
    uri = await artifacts.published("letters", CONTENT)
    job_id = await artifacts.submitted(**reads(uri))
    again = await artifacts.submit(**reads(uri))
    assert (again.json()["jobId"], again.json()["duplicate"]) == (job_id, True)
    assert await held(artifacts) == {job_id}
    await end(artifacts, job_id)
    await artifacts.run()
    await artifacts.tombstone("letters", 1)
    again = await artifacts.submit(**reads(uri))
    assert (again.json()["jobId"], again.json()["duplicate"]) == (job_id, True)
    assert await held(artifacts) == set()


async def test_a_job_that_is_refused_holds_nothing(artifacts: ArtifactStage) -> None:
    uri = await artifacts.uploaded(CONTENT)
    artifacts.registry.current = configured(TenantConfig(max_inflight=0))
    assert code(await artifacts.submit(**reads(uri))) == (429, "TENANT_SATURATED")
    assert await held(artifacts) == set()


async def test_a_job_of_which_nobody_knows_whether_it_was_made_keeps_its_hold(
    artifacts: ArtifactStage,
) -> None:
    """The collector finds out, when the job is there or enough time has passed."""
    uri = await artifacts.uploaded(CONTENT)
    artifacts.plane.detour.fail("create", error=LedgerUnavailable("away"))
    assert code(await artifacts.submit(**reads(uri))) == (503, "UNAVAILABLE")
    artifacts.plane.detour.heal()
    assert len(await held(artifacts)) == 1
    await artifacts.run()
    assert len(await held(artifacts)) == 1
    artifacts.plane.later(hours=2)
    await artifacts.run()
    assert await held(artifacts) == set()


async def test_a_job_that_another_process_has_planned_is_held_by_the_one_that_writes_it(
    artifacts: ArtifactStage,
) -> None:
    """Whoever planned it may have died before the job was written."""
    uri = await artifacts.uploaded(CONTENT)
    members = reads(uri)
    first = await artifacts.submitted(**members)
    await artifacts.artifacts.reading.release(first)
    again = await artifacts.submit(**members)
    assert again.json()["jobId"] == first
    assert await held(artifacts) == {first}


async def test_two_who_submit_the_same_at_once_leave_one_hold(artifacts: ArtifactStage) -> None:
    uri = await artifacts.uploaded(CONTENT)
    found = []

    async def meanwhile(*_: Any) -> None:
        artifacts.plane.detour.before.clear()
        found.append(await artifacts.submitted(**reads(uri)))

    artifacts.plane.detour.before["create"] = meanwhile
    job_id = await artifacts.submitted(**reads(uri))
    assert found == [job_id]
    assert await held(artifacts) == {job_id}


async def test_a_redriven_job_holds_its_input_anew(artifacts: ArtifactStage) -> None:
    uri = await artifacts.published("letters", CONTENT)
    failed = await artifacts.plane.failed(request(**reads(uri)))
    await artifacts.run()
    assert await held(artifacts) == set()
    answer = await artifacts.post(f"/v1/jobs/{failed}:redrive")
    assert answer.status_code == 202
    assert await held(artifacts) == {answer.json()["jobId"]}


async def test_a_job_whose_input_is_gone_cannot_be_redriven(artifacts: ArtifactStage) -> None:
    uri = await artifacts.published("letters", CONTENT)
    failed = await artifacts.plane.failed(request(**reads(uri)))
    await artifacts.tombstone("letters", 1)
    answer = await artifacts.post(f"/v1/jobs/{failed}:redrive")
    assert code(answer) == (422, "REF_INVALID")


async def test_a_job_without_artifacts_asks_nobody_about_them(
    artifacts: ArtifactStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Any) -> Any:
        raise AssertionError("asked")

    monkeypatch.setattr(artifacts.rows, "change", never)
    monkeypatch.setattr(artifacts.rows, "read", never)
    finds = artifacts.plane.detour.calls["find"]
    assert (await artifacts.submit()).status_code == 202
    assert artifacts.plane.detour.calls["find"] == finds
