"""Versions and collections, as a client asks for them."""

import subprocess
import sys

import pytest

from lucius_artifacts.client import ArtifactsClient, Conflict, NotFound, Unavailable
from tests.artifacts.client.quick import BytesSource
from tests.artifacts.client.server import TENANT, Server

PROBE = """
import sys
import lucius_artifacts.client
print(*sorted(name for name in sys.modules if name.startswith("lucius")))
print(*sorted({name.partition(".")[0] for name in sys.modules} - sys.stdlib_module_names))
"""


def entry(client: ArtifactsClient, content: bytes, path: str = "a.txt") -> dict[str, str]:
    digest = client.upload(BytesSource(path, content), TENANT).digest
    return {"path": path, "digest": digest, "media_type": "text/plain"}


def test_a_version_is_published_once_for_one_content(client: ArtifactsClient) -> None:
    first = client.publish("once", [entry(client, b"1")], TENANT)
    again = client.publish("once", [entry(client, b"1")], TENANT)
    other = client.publish("once", [entry(client, b"2")], TENANT)
    assert [each["version"] for each in (first, again, other)] == [1, 1, 2]
    assert first["entries"][0]["uri"] == "artifact://once/v1/a.txt"
    assert client.version("once", 2, TENANT) == other


def test_artifacts_and_versions_are_listed_a_page_at_a_time(client: ArtifactsClient) -> None:
    for number in (1, 2, 3):
        client.publish("paged", [entry(client, b"%d" % number)], TENANT)
    page = client.versions("paged", TENANT, limit=2)
    assert [each["version"] for each in page["versions"]] == [3, 2]
    rest = client.versions("paged", TENANT, limit=2, cursor=page["next_cursor"])
    assert [each["version"] for each in rest["versions"]] == [1]
    names = [each["name"] for each in client.artifacts(limit=200)["artifacts"]]
    assert "paged" in names


def test_a_version_is_withdrawn_and_restored(client: ArtifactsClient) -> None:
    client.publish("back", [entry(client, b"1")], TENANT)
    gone = client.tombstone("back", 1, 3600, TENANT, "by mistake")
    assert (gone["state"], gone["reason"]) == ("tombstoned", "by mistake")
    with pytest.raises(Conflict):
        client.tombstone("back", 1, 3600, TENANT)
    assert client.restore("back", 1, TENANT)["state"] == "published"
    with pytest.raises(NotFound):
        client.restore("back", 2, TENANT)


def test_a_version_in_quarantine_is_a_draft_until_it_is_let_out(
    server: Server, client: ArtifactsClient
) -> None:
    server.policy.reason = "it looks odd"
    draft = client.publish("odd", [entry(client, b"1")], TENANT)
    assert (draft["state"], draft["reason"]) == ("draft", "it looks odd")
    server.policy.reason = None
    assert client.publish_draft("odd", 1, TENANT)["state"] == "published"


def test_a_collection_is_run_or_only_explained(server: Server) -> None:
    with ArtifactsClient(server.url, "root") as client:
        assert client.collect(dry_run=True)["candidates"] is not None
        assert client.collect()["report"]["run_id"]


def test_what_changes_something_twice_is_not_repeated(
    server: Server, client: ArtifactsClient
) -> None:
    client.publish("twice", [entry(client, b"1")], TENANT)
    server.gate.trouble("POST", ":tombstone", cut_after=0)
    with pytest.raises(Unavailable, match="the connection to LUCIUS broke"):
        client.tombstone("twice", 1, 60, TENANT)
    assert server.gate.count("POST", ":tombstone") == 1


def test_the_client_brings_httpx_and_nothing_of_the_server() -> None:
    run = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
    ours, others = (set(line.split()) for line in run.stdout.splitlines())
    ours = {name for name in ours if not name.startswith("lucius_artifacts.client")}
    assert ours <= {"lucius_artifacts", "lucius_artifacts.names", "lucius_artifacts.errors"}
    assert others.isdisjoint({"pydantic", "typer", "fastapi", "starlette", "azure"})
