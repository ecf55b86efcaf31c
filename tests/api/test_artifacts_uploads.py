"""Bringing content: sessions, parts, verification, the fast path."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from lucius_artifacts.errors import Unavailable
from lucius_orchestrator.api.artifacts.shapes import UploadProgress, UploadView
from tests.api.artifact_stage import (
    LIMITS,
    UPLOADS,
    ArtifactStage,
    artifact_stage,
    digest_of,
    proof_of,
)
from tests.api.stage import code, pointers
from tests.engine.plane import TENANT
from tests.runner.deadlines import DEADLINE

CONTENT = b"ten bytes!"
MEMBERS = set(UploadView.model_fields)


async def test_content_is_brought_in_parts_and_read_again(artifacts: ArtifactStage) -> None:
    upload = await artifacts.begin(CONTENT)
    assert upload.keys() == MEMBERS
    assert (upload["state"], upload["part_size"], upload["part_count"]) == ("initiated", 4, 3)
    assert (upload["reason"], upload["uri"]) == (None, None)
    await artifacts.bring(upload, CONTENT)
    answer = await artifacts.complete(upload)
    assert answer.status_code == 200
    assert answer.json()["state"] == "committed"
    assert answer.json()["uri"] == f"artifact://blobs/{digest_of(CONTENT)}"
    assert await artifacts.read(answer.json()["uri"]) == CONTENT


async def test_a_session_is_where_its_location_says(artifacts: ArtifactStage) -> None:
    asked = {"tenant_id": TENANT, "digest": digest_of(b""), "length": 0, "part_size": 7}
    answer = await artifacts.post(UPLOADS, json=asked)
    found = await artifacts.get(answer.headers["location"])
    assert found.json() == answer.json() | {"received": []}
    assert answer.headers["location"] == answer.json()["links"]["self"]
    assert answer.json()["part_size"] == 7
    assert answer.headers["cache-control"] == found.headers["cache-control"] == "no-store"


async def test_empty_content_needs_no_parts(artifacts: ArtifactStage) -> None:
    uri = await artifacts.uploaded(b"")
    assert await artifacts.read(uri) == b""


async def test_an_interrupted_upload_goes_on_with_the_parts_that_are_missing(
    artifacts: ArtifactStage,
) -> None:
    content = bytes(range(30))
    upload = await artifacts.begin(content)
    await artifacts.bring(upload, content, [1, 2, 5, 8])
    found = (await artifacts.get(upload["links"]["self"])).json()
    assert found.keys() == set(UploadProgress.model_fields)
    assert found["received"] == [[1, 2], [5, 5], [8, 8]]
    refused = await artifacts.complete(upload)
    assert code(refused) == (409, "STATE_CONFLICT")
    assert "bring 3, 4, 6, 7" in refused.json()["detail"]
    await artifacts.bring(upload, content, [3, 4, 6, 7])
    assert (await artifacts.get(upload["links"]["self"])).json()["received"] == [[1, 8]]
    assert (await artifacts.complete(upload)).status_code == 200


async def test_a_part_that_comes_again_replaces_the_first(artifacts: ArtifactStage) -> None:
    upload = await artifacts.begin(CONTENT)
    await artifacts.bring(upload, b"other text")
    await artifacts.bring(upload, CONTENT)
    assert (await artifacts.complete(upload)).json()["state"] == "committed"


async def test_completing_is_repeatable(artifacts: ArtifactStage) -> None:
    upload = await artifacts.begin(CONTENT)
    await artifacts.bring(upload, CONTENT)
    first, again = [await artifacts.complete(upload) for _ in range(2)]
    assert first.json() == again.json()
    assert artifacts.objects.verified == 1


async def test_content_that_is_not_what_was_announced_is_aborted_and_nobody_can_read_it(
    artifacts: ArtifactStage,
) -> None:
    wrong = b"TEN BYTES!"
    upload = await artifacts.begin(CONTENT)
    await artifacts.bring(upload, wrong)
    for _ in range(2):
        answer = await artifacts.complete(upload)
        assert code(answer) == (409, "STATE_CONFLICT")
        assert digest_of(wrong) in answer.json()["detail"]
        assert "begin a new one" in answer.json()["detail"]
    found = (await artifacts.get(upload["links"]["self"])).json()
    assert (found["state"], found["received"]) == ("aborted", [])
    assert digest_of(wrong) in found["reason"]
    for content in (CONTENT, wrong):
        answer = await artifacts.located(f"artifact://blobs/{digest_of(content)}")
        assert code(answer) == (404, "ARTIFACT_NOT_FOUND")
    assert artifacts.told.count("lucius_artifact_uploads_total", outcome="aborted") == 1


async def test_known_content_is_committed_with_a_proof_and_nothing_is_brought(
    artifacts: ArtifactStage,
) -> None:
    await artifacts.uploaded(CONTENT)
    upload = await artifacts.begin(CONTENT)
    proof = proof_of(upload["challenge"], CONTENT)
    for _ in range(2):
        answer = await artifacts.post(upload["links"]["dedupe"], json={"proof": proof})
        assert (answer.status_code, answer.json()["state"]) == (200, "committed")
    assert await artifacts.read(answer.json()["uri"]) == CONTENT
    assert artifacts.told.count("lucius_artifact_uploads_total", outcome="committed") == 2
    assert artifacts.told.count("lucius_artifact_upload_bytes_total") == 2 * len(CONTENT)


async def test_without_a_proof_nothing_tells_whether_content_is_known(
    artifacts: ArtifactStage,
) -> None:
    await artifacts.uploaded(CONTENT, "mallory", "globex")
    texts = set()
    for content in (CONTENT, b"never seen"):
        upload = await artifacts.begin(content)
        answer = await artifacts.post(upload["links"]["dedupe"], json={"proof": "0" * 64})
        assert code(answer) == (409, "STATE_CONFLICT")
        texts.add(answer.json()["detail"])
        again = {"proof": proof_of(upload["challenge"], content)}
        assert code(await artifacts.post(upload["links"]["dedupe"], json=again))[0] == 409
    assert len(texts) == 1


async def test_an_upload_can_be_given_up_and_again(artifacts: ArtifactStage) -> None:
    upload = await artifacts.begin(CONTENT)
    (part,) = await artifacts.signed(upload, [1])
    for _ in range(2):
        answer = await artifacts.post(upload["links"]["abort"])
        assert answer.json() | {"state": "initiated", "reason": None} == upload
        assert answer.json()["reason"] == "aborted by ada"
    sign = await artifacts.post(upload["links"]["sign"], json={"parts": [1]})
    assert code(sign) == (409, "STATE_CONFLICT")
    assert code(await artifacts.complete(upload)) == (409, "STATE_CONFLICT")
    artifacts.plane.later(hours=2)
    assert (await artifacts.run()).json()["report"]["objects_gone"] == 1
    assert code(await artifacts.put(part["url"], CONTENT[:4]))[0] in {403, 410}


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"digest": "ABC"}, "ARTIFACT_INVALID", "/digest"),
    ({"length": 65 * 1024**3}, "ARTIFACT_INVALID", "/length"),
    ({"part_size": 2 * 1024**3}, "ARTIFACT_INVALID", "/part_size"),
    ({"length": -1}, "ENVELOPE_INVALID", "/length"),
    ({"length": "ten"}, "ENVELOPE_INVALID", "/length"),
    ({"part_size": 0}, "ENVELOPE_INVALID", "/part_size"),
    ({"tenant_id": ""}, "ENVELOPE_INVALID", "/tenant_id"),
    ({"tenant_id": "globex"}, "FORBIDDEN", "/tenant_id"),
]


async def test_a_session_that_cannot_work_is_refused_with_the_member_that_is_wrong(
    artifacts: ArtifactStage,
) -> None:
    statuses = {"ARTIFACT_INVALID": 422, "ENVELOPE_INVALID": 400, "FORBIDDEN": 403}
    asked = {"tenant_id": TENANT, "digest": digest_of(CONTENT), "length": 10}
    for members, problem, pointer in WRONG:
        answer = await artifacts.post(UPLOADS, json=asked | members)
        assert code(answer) == (statuses[problem], problem), members
        assert pointers(answer) == [pointer]


async def test_only_parts_that_there_can_be_are_signed(artifacts: ArtifactStage) -> None:
    upload = await artifacts.begin(CONTENT)
    for numbers in ([0], [4], [-1], [1] * 1001):
        answer = await artifacts.post(upload["links"]["sign"], json={"parts": numbers})
        assert code(answer) == (422, "ARTIFACT_INVALID")
        assert pointers(answer) == ["/parts"]


async def test_a_tenant_with_too_many_open_uploads_must_wait(artifacts: ArtifactStage) -> None:
    for number in range(5):
        await artifacts.begin(bytes([number]))
    asked = {"tenant_id": TENANT, "digest": digest_of(CONTENT), "length": 10}
    answer = await artifacts.post(UPLOADS, json=asked)
    assert code(answer) == (429, "TENANT_SATURATED")
    assert answer.headers["retry-after"] == "5"


async def test_an_upload_that_is_not_there_is_not_found(artifacts: ArtifactStage) -> None:
    ids = ("up_" + "0" * 32, "%2E%2E", "a%00b", "x" * 200)
    for upload_id, verb in product(ids, ("", ":sign", ":dedupe", ":complete", ":abort")):
        method, path = "POST" if verb else "GET", f"{UPLOADS}/{upload_id}{verb}"
        answer = await artifacts.ask(method, path, json={"parts": [], "proof": ""})
        assert code(answer) == (404, "ARTIFACT_NOT_FOUND"), path


HURRIED = replace(LIMITS, verification_patience=timedelta(milliseconds=1))


class TestVerificationThatTakesLong:
    async def test_the_client_is_told_to_ask_again_and_two_who_ask_share_one(
        self, tmp_path: Path
    ) -> None:
        async with artifact_stage("memory", tmp_path, HURRIED) as stage:
            upload = await stage.begin(CONTENT)
            await stage.bring(upload, CONTENT)
            stage.objects.open.clear()
            answers = await asyncio.gather(*(stage.complete(upload) for _ in range(3)))
            for answer in answers:
                assert answer.status_code == 202
                assert answer.json()["state"] == "pending_commit"
                assert answer.headers["retry-after"] == "5"
            stage.objects.open.set()
            ended = await self.ended(stage, upload)
            assert (ended.status_code, ended.json()["state"]) == (200, "committed")
            assert stage.objects.verified == 1

    async def test_a_mismatch_that_is_found_later_is_told_to_whoever_asks_again(
        self, tmp_path: Path
    ) -> None:
        async with artifact_stage("memory", tmp_path, HURRIED) as stage:
            upload = await stage.begin(CONTENT)
            await stage.bring(upload, b"x" * 10)
            stage.objects.open.clear()
            assert (await stage.complete(upload)).status_code == 202
            stage.objects.open.set()
            assert code(await self.ended(stage, upload)) == (409, "STATE_CONFLICT")

    async def test_a_process_that_stops_leaves_it_to_the_next(self, tmp_path: Path) -> None:
        async with artifact_stage("sqlite", tmp_path) as stage:
            upload = await stage.begin(CONTENT)
            await stage.bring(upload, CONTENT)
            stage.objects.open.clear()
            async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(stage.complete(upload))
                while not stage.objects.verified:
                    await asyncio.sleep(0)
                await stage.artifacts.verifications.close()
            assert code(waiting.result()) == (503, "UNAVAILABLE")
            assert code(await stage.complete(upload)) == (503, "UNAVAILABLE")
        async with artifact_stage("sqlite", tmp_path) as stage:
            found = await stage.get(upload["links"]["self"])
            assert found.json()["state"] == "pending_commit"
            assert (await stage.complete(upload)).json()["state"] == "committed"

    async def ended(self, stage: ArtifactStage, upload: dict[str, Any]) -> Any:
        async with asyncio.timeout(DEADLINE):
            while (answer := await stage.complete(upload)).status_code == 202:
                await asyncio.sleep(0)
        return answer


async def test_storage_that_is_away_is_told_without_its_details(
    artifacts: ArtifactStage,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def away(*_: Any) -> Any:
        raise Unavailable("disk 7 of host secret-name burns")

    upload = await artifacts.begin(CONTENT)
    monkeypatch.setattr(artifacts.objects, "begin", away)
    answer = await artifacts.post(upload["links"]["sign"], json={"parts": [1]})
    assert code(answer) == (503, "UNAVAILABLE")
    assert "secret-name" not in answer.text
    (record,) = [each for each in caplog.records if each.msg == "api.artifacts_unavailable"]
    assert "secret-name" in vars(record)["error"]
