"""A tenant's artifacts are its own, a role may do what it may do, and all of it can be off."""

from typing import Any

import pytest

from lucius_orchestrator.api.artifacts.operations import OPERATIONS
from lucius_orchestrator.api.operation import Guard, Operation
from lucius_orchestrator.security.callers import NEEDS, Role
from tests.api.artifact_stage import ArtifactStage, digest_of
from tests.api.stage import CALLERS, FOREIGN, OFF, Stage, code
from tests.engine.plane import TENANT

CONTENT = b"ten bytes!"
BODIES: dict[str, dict[str, Any]] = {
    "beginUpload": {"digest": digest_of(CONTENT), "length": 10},
    "signParts": {"parts": [1]},
    "dedupeUpload": {"proof": "0" * 64},
    "publishVersion": {"entries": [{"path": "a", "digest": digest_of(CONTENT)}]},
    "tombstoneVersion": {"retention_seconds": 60},
}
OF_AN_UPLOAD = ["readUpload", "signParts", "dedupeUpload", "completeUpload", "abortUpload"]
NAMES_A_TENANT = [
    "listArtifacts",
    "listVersions",
    "readVersion",
    "readContent",
    "beginUpload",
    "publishVersion",
    "publishDraft",
    "tombstoneVersion",
    "restoreVersion",
]
FOR_ALL_TENANTS = ["runCollection"]
SIGNED = ["putPart", "readObject"]
BY_ID = {operation.id: operation for operation in OPERATIONS}
CALLED = [operation for operation in OPERATIONS if operation.guard is Guard.CALLER]


def test_every_operation_is_tested_here() -> None:
    assert {*OF_AN_UPLOAD, *NAMES_A_TENANT, *FOR_ALL_TENANTS, *SIGNED} == BY_ID.keys()


async def ask(
    stage: Stage, operation: Operation, caller: str, upload_id: str, tenant: str = TENANT
) -> Any:
    path = operation.path.replace("{uploadId}", upload_id).replace("{name}", "letters")
    path = path.replace("{version}", "1")
    if operation.method == "GET":
        query = {"tenant_id": tenant} if operation.id in NAMES_A_TENANT else {}
        if operation.id == "readContent":
            query["uri"] = f"artifact://blobs/{digest_of(CONTENT)}"
        return await stage.ask("GET", path, caller, params=query)
    body = {"tenant_id": tenant, **BODIES.get(operation.id, {})}
    return await stage.ask(operation.method, path, caller, json=body)


async def test_an_upload_of_another_tenant_is_one_that_does_not_exist(
    artifacts: ArtifactStage,
) -> None:
    upload = await artifacts.begin(CONTENT)
    nobodys = "up_" + "f" * 32
    for operation in map(BY_ID.__getitem__, OF_AN_UPLOAD):
        foreign = await ask(artifacts, operation, "mallory", upload["upload_id"])
        unknown = await ask(artifacts, operation, "mallory", nobodys)
        assert code(foreign) == (404, "ARTIFACT_NOT_FOUND"), operation.id
        same = foreign.json()["detail"].replace(upload["upload_id"], nobodys)
        assert same == unknown.json()["detail"]
    assert (await artifacts.get(upload["links"]["self"])).json()["state"] == "initiated"


async def test_nobody_names_a_foreign_tenant(artifacts: ArtifactStage) -> None:
    await artifacts.published("letters", CONTENT)
    for operation in map(BY_ID.__getitem__, NAMES_A_TENANT):
        answer = await ask(artifacts, operation, "mallory", "")
        assert code(answer) == (403, "FORBIDDEN"), operation.id


async def test_what_another_tenant_has_is_not_there_for_ones_own(
    artifacts: ArtifactStage,
) -> None:
    uri = await artifacts.published("letters", CONTENT)
    for name in ("listVersions", "readVersion", "readContent"):
        answer = await ask(artifacts, BY_ID[name], "mallory", "", FOREIGN)
        assert code(answer) == (404, "ARTIFACT_NOT_FOUND"), name
    assert code(await artifacts.located(uri, "mallory"))[0] == 404
    published = await artifacts.publish("mine", CONTENT, caller="mallory", tenant=FOREIGN)
    assert code(published) == (404, "ARTIFACT_NOT_FOUND")
    listed = await artifacts.get("/v1/artifacts", "mallory")
    assert listed.json() == {"artifacts": [], "next_cursor": None}


async def test_two_tenants_have_artifacts_of_the_same_name(artifacts: ArtifactStage) -> None:
    mine = await artifacts.published("letters", CONTENT)
    theirs = await artifacts.published("letters", b"other", "mallory", FOREIGN)
    assert mine == theirs
    assert await artifacts.read(mine) == CONTENT
    assert await artifacts.read(theirs, "mallory") == b"other"


async def test_a_caller_with_several_tenants_names_one(artifacts: ArtifactStage) -> None:
    uri = await artifacts.published("letters", CONTENT)
    for caller in ("both", "root"):
        assert code(await artifacts.located(uri, caller)) == (400, "ENVELOPE_INVALID")
        assert await artifacts.read(uri, caller, tenant=TENANT) == CONTENT


async def test_a_job_reads_only_what_is_held_for_it_in_its_own_tenant(
    artifacts: ArtifactStage,
) -> None:
    uri = await artifacts.uploaded(CONTENT)
    await artifacts.artifacts.reading.hold("job_1", TENANT, [uri])
    foreign = await artifacts.located(uri, "mallory", job_id="job_1")
    assert code(foreign) == (404, "ARTIFACT_NOT_FOUND")


async def test_a_role_that_is_not_enough_is_refused_before_anything_else(
    artifacts: ArtifactStage,
) -> None:
    for operation in CALLED:
        assert operation.verb is not None
        enough = NEEDS[operation.verb]
        for name, role in (
            ("reader", Role.READ),
            ("submitter", Role.SUBMIT),
            ("operator", Role.OPERATE),
        ):
            answer = await ask(artifacts, operation, name, "up_1")
            is_refused = answer.status_code == 403 and "needs the role" in answer.text
            assert is_refused is (role not in enough), (operation.id, name)


async def test_collections_are_for_callers_with_all_tenants(artifacts: ArtifactStage) -> None:
    assert Role.ADMIN in CALLERS["ada"].roles
    answer = await artifacts.post("/v1/artifacts/runs", "ada", json={})
    assert code(answer) == (403, "FORBIDDEN")


async def test_where_artifacts_are_off_whoever_asks_is_told_what_to_set(stage: Stage) -> None:
    for operation in OPERATIONS:
        if operation.guard is Guard.CALLER:
            answer = await ask(stage, operation, "root", "up_1")
        else:
            path = operation.path.replace("{key}", "ob_1").replace("{number}", "1")
            answer = await stage.ask(operation.method, path, None)
        assert code(answer) == (503, "UNAVAILABLE"), operation.id
        assert answer.json()["detail"] == OFF


async def test_objects_are_served_only_where_their_addresses_lead_here(
    artifacts: ArtifactStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url = await signed_part(artifacts)
    object.__setattr__(artifacts.artifacts, "signer", None)
    assert code(await artifacts.put(url, CONTENT)) == (404, "ARTIFACT_NOT_FOUND")


async def signed_part(stage: ArtifactStage) -> tuple[Any, str]:
    upload = await stage.begin(CONTENT, part_size=10)
    (part,) = await stage.signed(upload, [1])
    return upload, part["url"]
