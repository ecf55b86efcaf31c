"""Artifacts as inputs and outputs of steps, against the real API."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from lucius_artifacts.client import ArtifactsClient
from lucius_artifacts.errors import NotFound
from lucius_artifacts.states import VersionState
from lucius_contract.documents import Artifact, Ref
from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import (
    Catalogue,
    Fence,
    Input,
    LocalStorage,
    StepFolder,
    Storages,
    Workspace,
    open_catalogues,
    open_storages,
    publish,
)
from lucius_sdk.workspace_io.artifact.catalogues import ApiCatalogue, ApiCatalogues
from lucius_sdk.workspace_io.storages import JobStorages
from lucius_settings.secret import Secret
from tests.artifacts.client.quick import QUICK, BytesSource, pattern
from tests.artifacts.client.server import (
    KEY,
    TENANT,
    Server,
    producer_token,
    running_server,
)
from tests.sdk.workspace_io.stage import WORKSPACE, Checks, Stop, raises

JOB = "job_1"
PART = 64 * 1024


@pytest.fixture(scope="module")
def one_server() -> Iterator[Server]:
    with TemporaryDirectory() as folder, running_server(Path(folder), part_size=PART) as server:
        yield server


@pytest.fixture
def server(one_server: Server) -> Server:
    one_server.forget()
    return one_server


@pytest.fixture(scope="module")
def client(one_server: Server) -> Iterator[ArtifactsClient]:
    with ArtifactsClient(one_server.url, KEY, patience=QUICK) as client:
        yield client


@pytest.fixture
def storages(server: Server, tmp_path: Path) -> Iterator[Storages]:
    catalogues = ApiCatalogues(server.url, Secret(KEY), patience=QUICK)
    storages = Storages(LocalStorage(tmp_path), (), catalogues)
    yield storages
    storages.close()


@pytest.fixture
def reach(storages: Storages) -> JobStorages:
    return storages.of_job(TENANT, JOB)


@pytest.fixture
def workspace(reach: JobStorages, tmp_path: Path) -> Workspace:
    root = f"{tmp_path.as_uri()}/{WORKSPACE}"
    return Workspace(StepFolder(reach.workspace, root, "OCR", 1, 1))


def fence(attempt_no: int = 1, epoch: int = 1, step: int = 1, job: str = JOB) -> Fence:
    return Fence(TENANT, job, f"step_{step:02d}", attempt_no, epoch)


def put(
    reach: JobStorages,
    name: str,
    content: Artifact | bytes,
    by: Fence | None = None,
    media_type: str | None = None,
) -> str:
    target, by = Ref(uri=f"artifact://{name}"), by or fence()
    catalogue = proven(reach, by)
    return publish(reach.workspace, target, content, by, media_type, catalogue=catalogue)


def proven(reach: JobStorages, by: Fence) -> Catalogue | None:
    """The catalogue, with the token of this run's directive."""
    found = reach.catalogue
    if not isinstance(found, ApiCatalogue):
        return found
    token = producer_token(by.job_id, by.step_id, by.attempt_no)
    return found._catalogues.of_job(TENANT, by.job_id, token)


def read(reach: JobStorages, uri: str) -> bytes:
    return Input(reach, uri).read()


def test_an_input_is_read_by_its_version_or_its_digest(
    client: ArtifactsClient, reach: JobStorages
) -> None:
    content = pattern(3 * PART + 1)
    blob = client.upload(BytesSource("a", content), TENANT)
    client.publish("inbox", [{"path": "in/a b.pdf", "digest": blob.digest}], TENANT)
    assert read(reach, blob.uri) == content
    assert read(reach, "artifact://inbox/v1/in/a%20b.pdf") == content
    assert "artifact" in reach.schemes


def test_files_are_read_as_before(reach: JobStorages, workspace: Workspace) -> None:
    assert read(reach, workspace.write("a", b"here").uri) == b"here"
    with raises(ErrorCode.INPUT_INVALID, "does not read"):
        read(reach, "gs://bucket/a")


def test_an_outcome_is_the_next_version_and_its_uri_names_that(
    server: Server, reach: JobStorages, workspace: Workspace
) -> None:
    content = pattern(5 * PART + 3)
    artifact = workspace.write("pages/result.json", content, "application/json")
    uri = put(reach, "outcome", artifact)
    assert uri == "artifact://outcome/v1/pages/result.json"
    assert read(reach, uri) == content
    (version,) = server.versions("outcome")
    assert version.producer is not None
    assert (version.producer.job_id, version.entries[0].media_type) == (JOB, "application/json")
    assert sorted(server.gate.parts()) == [1, 2, 3, 4, 5, 6]
    assert put(reach, "outcome", b"{}", fence(job="job_2")) == "artifact://outcome/v2/output"


@pytest.mark.parametrize(
    ("media_type", "path"),
    [
        ("application/json", "output.json"),
        ("text/plain; charset=utf-8", "output.txt"),
        ("x/unknown", "output"),
        (None, "output"),
    ],
)
def test_bytes_are_called_by_their_media_type(
    reach: JobStorages, media_type: str | None, path: str
) -> None:
    name = f"bytes-{path.replace('.', '-')}-{media_type is None}".lower()
    assert put(reach, name, b"{}", None, media_type) == f"artifact://{name}/v1/{path}"


def test_an_outcome_that_the_server_has_is_proved_and_not_sent(
    server: Server, reach: JobStorages, workspace: Workspace
) -> None:
    artifact = workspace.write("a", pattern(1024 * 1024, seed=3))
    put(reach, "first", artifact)
    sent = len(server.gate.parts())
    assert put(reach, "second", artifact) == "artifact://second/v1/a"
    assert len(server.gate.parts()) == sent


def test_a_take_over_with_the_same_content_gives_the_same_uri(
    server: Server, reach: JobStorages
) -> None:
    uris = [put(reach, "same", b"same", fence(1, epoch)) for epoch in (1, 1, 2)]
    uris.append(put(reach, "same", b"same", fence(2, 1)))
    assert set(uris) == {"artifact://same/v1/output"}
    assert len(server.versions("same")) == 1


def test_a_take_over_with_other_content_withdraws_what_the_job_published_before(
    server: Server, reach: JobStorages
) -> None:
    put(reach, "other", b"one", fence(1, 1))
    assert put(reach, "other", b"two", fence(1, 2)) == "artifact://other/v2/output"
    newest, before = server.versions("other")
    assert (newest.state, before.state) == (VersionState.PUBLISHED, VersionState.TOMBSTONED)


@pytest.mark.parametrize("late", [fence(1, 1), fence(1, 2), fence(2, 1)])
def test_an_older_run_publishes_nothing(server: Server, reach: JobStorages, late: Fence) -> None:
    name = f"late-{late.attempt_no}-{late.epoch}"
    put(reach, name, b"newer", fence(2, 2))
    with raises(ErrorCode.OUTPUT_CONFLICT, "outdated"):
        put(reach, name, b"older", late)
    assert len(server.versions(name)) == 1


def test_a_later_step_counts_whatever_the_attempts_of_the_one_before(
    server: Server, reach: JobStorages
) -> None:
    put(reach, "steps", b"text", fence(3, 2, step=1))
    assert put(reach, "steps", b"vectors", fence(1, 1, step=2)) == "artifact://steps/v2/output"
    with raises(ErrorCode.OUTPUT_CONFLICT, "outdated"):
        put(reach, "steps", b"text again", fence(4, 1, step=1))
    states = [version.state for version in server.versions("steps")]
    assert states == [VersionState.PUBLISHED, VersionState.TOMBSTONED]


def test_one_run_cannot_publish_two_contents(reach: JobStorages) -> None:
    put(reach, "two", b"one")
    with raises(ErrorCode.OUTPUT_CONFLICT, "same run"):
        put(reach, "two", b"two")


def test_jobs_that_publish_to_one_name_do_not_withdraw_each_others_versions(
    server: Server, reach: JobStorages
) -> None:
    put(reach, "shared", b"one", fence(9, 9, job="job_1"))
    put(reach, "shared", b"two", fence(1, 1, job="job_2"))
    assert {version.state for version in server.versions("shared")} == {VersionState.PUBLISHED}


def test_an_outcome_in_quarantine_is_an_error_that_says_why(
    server: Server, reach: JobStorages
) -> None:
    server.policy.reason = "a virus"
    with raises(ErrorCode.OUTPUT_CONFLICT, r"odd/v1/output is in quarantine.*a virus"):
        put(reach, "odd", b"one")
    server.policy.reason = None
    assert put(reach, "odd", b"one", fence(1, 2)) == "artifact://odd/v1/output"


def test_what_is_not_there_or_was_deleted_is_not_found(
    client: ArtifactsClient, reach: JobStorages
) -> None:
    uri = put(reach, "gone", b"one")
    client.tombstone("gone", 1, 60, TENANT)
    for absent in (uri, "artifact://gone/v7/output", f"artifact://blobs/{'0' * 64}"):
        with raises(ErrorCode.INPUT_NOT_FOUND):
            read(reach, absent)


def test_what_is_held_for_the_job_is_read_although_it_was_deleted(
    server: Server, client: ArtifactsClient, storages: Storages, reach: JobStorages
) -> None:
    uri = put(reach, "held", b"held one")
    server.run(server.artifacts.reading.hold(JOB, TENANT, [uri]))
    client.tombstone("held", 1, 60, TENANT)
    assert read(reach, uri) == b"held one"
    with raises(ErrorCode.INPUT_NOT_FOUND):
        read(storages.of_job(TENANT, "job_9"), uri)


def test_another_tenants_artifacts_do_not_exist(server: Server, reach: JobStorages) -> None:
    uri = put(reach, "mine", b"one")
    foreign = Storages(reach.workspace, (), ApiCatalogues(server.url, Secret("mallory")))
    with raises(ErrorCode.INPUT_NOT_FOUND):
        read(foreign.of_job("globex", JOB), uri)
    foreign.close()


@pytest.mark.parametrize(
    "uri", ["artifact://inbox", "artifact://inbox/v1", "artifact://In/v1/a", "artifact://blobs/x"]
)
def test_what_names_no_content_is_an_invalid_input(reach: JobStorages, uri: str) -> None:
    with raises(ErrorCode.INPUT_INVALID):
        read(reach, uri)


@pytest.mark.parametrize("uri", ["artifact://a/v1/b", "artifact://blobs/x", "artifact://A"])
def test_one_publishes_to_an_artifact_and_not_to_a_version(reach: JobStorages, uri: str) -> None:
    with raises(ErrorCode.OUTPUT_UNSUPPORTED):
        publish(reach.workspace, Ref(uri=uri), b"", fence(), catalogue=proven(reach, fence()))


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/content", ErrorCode.STORAGE_UNAVAILABLE),
        ("GET", "/objects/", ErrorCode.STORAGE_UNAVAILABLE),
    ],
)
def test_a_server_that_is_away_while_one_reads_is_a_retryable_fault(
    server: Server, reach: JobStorages, method: str, path: str, code: ErrorCode
) -> None:
    uri = put(reach, "away", b"one")
    server.gate.trouble(method, path, times=100, status=503)
    with raises(code):
        read(reach, uri)


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/uploads", 503, ErrorCode.STORAGE_UNAVAILABLE),
        ("/uploads", 429, ErrorCode.RATE_LIMITED),
        ("/uploads", 401, ErrorCode.STORAGE_UNAVAILABLE),
        ("/uploads", 422, ErrorCode.INTERNAL),
        (":complete", 500, ErrorCode.STORAGE_UNAVAILABLE),
        ("/versions", 503, ErrorCode.STORAGE_UNAVAILABLE),
        ("/versions", 404, ErrorCode.STORAGE_UNAVAILABLE),
        ("/versions", 409, ErrorCode.OUTPUT_CONFLICT),
        ("/versions", 422, ErrorCode.INTERNAL),
    ],
)
def test_what_fails_while_one_publishes_says_whether_another_attempt_helps(
    server: Server, reach: JobStorages, path: str, status: int, code: ErrorCode
) -> None:
    server.gate.trouble("POST", path, times=100, status=status)
    with raises(code):
        put(reach, "failing", b"one")


def test_content_that_comes_damaged_is_a_retryable_fault(
    server: Server, reach: JobStorages
) -> None:
    uri = put(reach, "damaged", b"one")
    server.gate.trouble("GET", "/objects/", damage_at=0)
    with raises(ErrorCode.STORAGE_UNAVAILABLE, "another SHA-256"):
        read(reach, uri)


def test_a_workspace_that_was_altered_publishes_nothing(
    server: Server, reach: JobStorages, workspace: Workspace
) -> None:
    artifact = workspace.write("a", b"written")
    Path(artifact.uri.removeprefix("file://")).write_bytes(b"altered")
    with raises(ErrorCode.STORAGE_UNAVAILABLE, "a was not taken"):
        put(reach, "altered", artifact)
    assert server.gate.count("POST", "/versions") == 0


@pytest.mark.parametrize("allowed", [1, 2, 5])
def test_work_that_must_stop_publishes_nothing(
    server: Server, reach: JobStorages, workspace: Workspace, allowed: int
) -> None:
    artifact, target = workspace.write("a", pattern(8 * PART)), Ref(uri="artifact://stopped")
    checks, catalogue = Checks(allowed), proven(reach, fence())
    with pytest.raises(Stop):
        publish(reach.workspace, target, artifact, fence(), None, checks, catalogue)
    assert server.gate.count("POST", "/versions") == 0


@pytest.mark.parametrize("forged", [None, "", "1.9999999999.x.y"])
def test_what_no_directive_allows_is_not_published(
    server: Server, storages: Storages, forged: str | None
) -> None:
    tokens = [forged, producer_token(JOB, "step_01", 2), producer_token("job_2", "step_01", 1)]
    for token in tokens:
        reach = storages.of_job(TENANT, JOB, token)
        with raises(ErrorCode.STORAGE_UNAVAILABLE):
            publish(
                reach.workspace,
                Ref(uri="artifact://forged"),
                b"one",
                fence(),
                catalogue=reach.catalogue,
            )
    with pytest.raises(NotFound):
        server.versions("forged")


def test_without_an_address_it_is_said_what_to_set(tmp_path: Path) -> None:
    assert open_catalogues(None, None) is None
    storages = open_storages(str(tmp_path))
    reach = storages.of_job(TENANT, JOB)
    assert "artifact" not in reach.schemes
    with raises(ErrorCode.INPUT_INVALID, "set LUCIUS_ARTIFACTS_URL"):
        read(reach, "artifact://inbox/v1/a")
    with raises(ErrorCode.OUTPUT_UNSUPPORTED, "set LUCIUS_ARTIFACTS_URL"):
        put(reach, "outcome", b"one")
    storages.close()


def test_a_service_that_never_meets_an_artifact_opens_no_connection(tmp_path: Path) -> None:
    catalogues = open_catalogues("http://127.0.0.1:1", None)
    storages = open_storages(str(tmp_path), catalogues=catalogues)
    storages.of_job(TENANT, JOB)
    assert isinstance(catalogues, ApiCatalogues)
    assert catalogues._client is None
    storages.close()
    storages.close()
