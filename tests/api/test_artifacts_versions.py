"""Versions of artifacts: published, kept in quarantine, tombstoned, restored, listed and read."""

from typing import Any

from lucius_artifacts.errors import Unavailable
from lucius_artifacts.ports.policy import Allow, Quarantine
from lucius_orchestrator.api.artifacts.shapes import ArtifactView, ContentView, VersionView
from tests.api.artifact_stage import ArtifactStage, digest_of
from tests.api.stage import code, pointers
from tests.engine.plane import TENANT

ONE, TWO = b"first content", b"second content"


def members(shape: Any) -> set[str]:
    return {field.alias or name for name, field in shape.model_fields.items()}


def versions(name: str = "letters") -> str:
    return f"/v1/artifacts/{name}/versions"


async def test_a_version_is_published_and_read(artifacts: ArtifactStage) -> None:
    await artifacts.uploaded(ONE)
    answer = await artifacts.publish("letters", ONE)
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{versions()}/1"
    version = answer.json()
    assert version.keys() == members(VersionView)
    assert (version["version"], version["state"], version["created_by"]) == (1, "published", "ada")
    assert version["entries"] == [
        {
            "path": "files/0.txt",
            "digest": digest_of(ONE),
            "length": len(ONE),
            "media_type": "text/plain",
            "uri": "artifact://letters/v1/files/0.txt",
        }
    ]
    assert (await artifacts.get(answer.headers["location"])).json() == version
    assert await artifacts.read("artifact://letters/v1/files/0.txt") == ONE


async def test_an_answer_that_was_lost_can_be_asked_for_again(artifacts: ArtifactStage) -> None:
    await artifacts.uploaded(ONE)
    first, again = [await artifacts.publish("letters", ONE) for _ in range(2)]
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()


async def test_artifacts_and_versions_are_listed_in_pages(artifacts: ArtifactStage) -> None:
    for name in ("letters", "bills", "photos"):
        await artifacts.published(name, ONE)
    await artifacts.published("letters", TWO)
    found: list[Any] = []
    cursor = None
    while cursor is not None or not found:
        query = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = (await artifacts.get("/v1/artifacts", params=query)).json()
        found += page["artifacts"]
        cursor = page["next_cursor"]
    assert [each["name"] for each in found] == ["bills", "letters", "photos"]
    assert found[1].keys() == members(ArtifactView)
    assert (found[1]["latest"], found[1]["published"]) == (2, 2)
    newest = (await artifacts.get(versions(), params={"limit": "1"})).json()
    assert [each["version"] for each in newest["versions"]] == [2]
    rest = await artifacts.get(versions(), params={"cursor": newest["next_cursor"]})
    assert [each["version"] for each in rest.json()["versions"]] == [1]
    assert rest.json()["next_cursor"] is None


async def test_what_is_not_there_is_not_found(artifacts: ArtifactStage) -> None:
    await artifacts.published("letters", ONE)
    for path in (versions("other"), f"{versions()}/2"):
        assert code(await artifacts.get(path)) == (404, "ARTIFACT_NOT_FOUND")
    for uri in ("letters/v2/files/0.txt", "letters/v1/none", f"blobs/{digest_of(TWO)}"):
        answer = await artifacts.located(f"artifact://{uri}")
        assert code(answer) == (404, "ARTIFACT_NOT_FOUND")
    missing = await artifacts.publish("letters", TWO)
    assert code(missing) == (404, "ARTIFACT_NOT_FOUND")
    assert digest_of(TWO) in missing.json()["detail"]


async def test_what_can_never_work_is_refused_with_where_it_is_wrong(
    artifacts: ArtifactStage,
) -> None:
    await artifacts.uploaded(ONE)
    entry = {"path": "a", "digest": digest_of(ONE)}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"entries": []}, "/entries"),
        ({"entries": [entry, entry]}, "/entries"),
        ({"entries": [entry, {**entry, "path": "../b"}]}, "/entries/1/path"),
        ({"entries": [{**entry, "digest": "x"}]}, "/entries/0/digest"),
        ({"entries": [{**entry, "media_type": "a\nb"}]}, "/entries/0/media_type"),
    ]
    for members_, pointer in wrong:
        answer = await artifacts.post(versions(), json={"tenant_id": TENANT, **members_})
        assert code(answer) == (422, "ARTIFACT_INVALID"), members_
        assert pointers(answer) == [pointer]
    for name in ("blobs", "UPPER", "a..b"):
        answer = await artifacts.publish(name, ONE)
        assert code(answer) == (422, "ARTIFACT_INVALID")
        assert pointers(answer) == ["/path/name"]
        assert code(await artifacts.get(f"{versions(name)}/1"))[0] == 422
    for uri in ("artifact://letters", "https://a/b", "artifact://letters/v0/a"):
        answer = await artifacts.located(uri)
        assert code(answer) == (422, "ARTIFACT_INVALID")
        assert pointers(answer) == ["/query/uri"]
    tombstone = {"tenant_id": TENANT, "retention_seconds": 10**9}
    answer = await artifacts.post(f"{versions()}/1:tombstone", json=tombstone)
    assert pointers(answer) == ["/retention_seconds"]
    for number in ("0", "x", "1000000000"):
        assert code(await artifacts.get(f"{versions()}/{number}")) == (400, "ENVELOPE_INVALID")


async def test_the_policy_keeps_a_version_in_quarantine_until_it_is_asked_again(
    artifacts: ArtifactStage,
) -> None:
    await artifacts.uploaded(ONE)
    artifacts.policy.verdict = Quarantine("holds a virus")
    answer = await artifacts.publish("letters", ONE)
    assert (answer.status_code, answer.json()["state"]) == (201, "draft")
    assert answer.json()["reason"] == "holds a virus"
    uri = answer.json()["entries"][0]["uri"]
    assert code(await artifacts.located(uri)) == (404, "ARTIFACT_NOT_FOUND")
    path = f"{versions()}/1:publish"
    still = await artifacts.post(path, json={"tenant_id": TENANT})
    assert still.json()["state"] == "draft"
    artifacts.policy.verdict = Allow()
    assert (await artifacts.post(path, json={"tenant_id": TENANT})).json()["state"] == "published"
    assert await artifacts.read(uri) == ONE
    again = await artifacts.post(path, json={"tenant_id": TENANT})
    assert code(again) == (409, "STATE_CONFLICT")
    counted = {
        outcome: artifacts.told.count("lucius_artifact_versions_total", outcome=outcome)
        for outcome in ("published", "quarantined")
    }
    assert counted == {"published": 1, "quarantined": 2}


async def test_nothing_is_published_while_the_policy_is_away(artifacts: ArtifactStage) -> None:
    await artifacts.uploaded(ONE)
    for error in (Unavailable("away"), RuntimeError("broken")):
        artifacts.policy.verdict = error
        assert code(await artifacts.publish("letters", ONE)) == (503, "UNAVAILABLE")
    assert code(await artifacts.get(versions())) == (404, "ARTIFACT_NOT_FOUND")


async def test_a_tombstoned_version_is_gone_until_it_is_restored(
    artifacts: ArtifactStage,
) -> None:
    uri = await artifacts.published("letters", ONE)
    answer = await artifacts.tombstone("letters", 1, retention=3600)
    assert answer.json()["state"] == "tombstoned"
    assert answer.json()["reason"] == "replaced"
    assert answer.json()["retained_until"] == artifacts.moment(hours=1)
    assert code(await artifacts.located(uri)) == (410, "ARTIFACT_GONE")
    restore = f"{versions()}/1:restore"
    restored = await artifacts.post(restore, "operator", json={"tenant_id": TENANT})
    assert restored.json()["state"] == "published"
    assert await artifacts.read(uri) == ONE
    await artifacts.tombstone("letters", 1, retention=60)
    artifacts.plane.later(minutes=2)
    late = await artifacts.post(restore, "operator", json={"tenant_id": TENANT})
    assert code(late) == (409, "STATE_CONFLICT")


async def test_of_two_runs_of_a_job_the_later_one_counts(artifacts: ArtifactStage) -> None:
    for content in (ONE, TWO):
        await artifacts.uploaded(content)
    first, later = artifacts.producer(1), artifacts.producer(2)
    assert (await artifacts.publish("letters", ONE, producer=first)).status_code == 201
    answer = await artifacts.publish("letters", TWO, producer=later)
    assert (answer.status_code, answer.json()["version"]) == (201, 2)
    shown = {name: value for name, value in later.items() if name != "token"}
    assert answer.json()["producer"] == shown
    late = await artifacts.publish("letters", ONE, producer=first)
    assert code(late) == (409, "STATE_CONFLICT")
    states = [each["state"] for each in (await artifacts.get(versions())).json()["versions"]]
    assert states == ["published", "tombstoned"]


async def test_an_address_says_what_it_leads_to(artifacts: ArtifactStage) -> None:
    uri = await artifacts.published("letters", ONE)
    answer = await artifacts.located(uri)
    found = answer.json()
    assert found.keys() == members(ContentView)
    assert found["digest"] == digest_of(ONE)
    assert (found["uri"], found["length"], found["method"]) == (uri, len(ONE), "GET")
    assert (found["media_type"], found["file_name"]) == ("text/plain", "0.txt")
    assert found["expires_at"] > artifacts.moment()
    assert answer.headers["cache-control"] == "no-store"
