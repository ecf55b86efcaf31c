"""The storages that settings name."""

import sys
import time
import uuid
from pathlib import Path

import pytest

from lucius_azure.storage import StorageAccount
from lucius_contract.documents import Ref
from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import (
    BlobStorage,
    Input,
    LocalStorage,
    Storages,
    open_storages,
    publish,
)
from lucius_settings.secret import Secret
from tests.azurite import Azurite
from tests.sdk.workspace_io.objects import create
from tests.sdk.workspace_io.stage import BlobStage, fence, raises

BLOBS = "lucius_sdk.workspace_io.blob"


def test_roots_are_paths_or_file_uris(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for root in ("data/workspace", str(tmp_path / "abs"), (tmp_path / "a b").as_uri()):
        storages = open_storages(root)
        storages.check()
        storages.close()
    assert {path.name for path in tmp_path.iterdir()} == {"data", "abs", "a b"}


def test_inputs_come_from_the_input_roots_and_over_https(tmp_path: Path) -> None:
    (tmp_path / "scans").mkdir()
    (tmp_path / "scans" / "a.pdf").write_bytes(b"%PDF")
    storages = open_storages(str(tmp_path / "root"), [(tmp_path / "scans").as_uri()])
    reach = storages.of_job("acme", "job_1")
    assert reach.schemes == {"file", "http", "https", "s3"}
    assert reach.output_schemes == {"file", "s3"}
    assert Input(reach, (tmp_path / "scans/a.pdf").as_uri()).read() == b"%PDF"


@pytest.mark.parametrize("root", ["gs://bucket/a", "https://host/a", "file://host/a", "s3://B/a"])
def test_other_roots_are_refused_with_what_is_allowed(tmp_path: Path, root: str) -> None:
    with pytest.raises(ValueError, match="give a path, or a uri"):
        open_storages(root)
    with pytest.raises(ValueError, match="give a path, or a uri"):
        open_storages(str(tmp_path), [root])
    with pytest.raises(ValueError, match="give a path, or a uri"):
        open_storages(str(tmp_path), output_roots=[root])


@pytest.fixture
def blobs(azure_storage: Azurite) -> StorageAccount:
    return StorageAccount(Secret(azure_storage.connection))


def test_a_workspace_of_blobs_is_made_and_used(blobs: StorageAccount) -> None:
    root = f"az://c{uuid.uuid4().hex}/jobs"
    for slash in ("", "/"):
        storages = open_storages(root + slash, blobs=blobs)
        storages.check()
        reach = storages.of_job("acme", "job_1")
        assert isinstance(reach.workspace, BlobStorage)
        assert reach.schemes == {"az", "file", "http", "https", "s3"}
        create(reach.workspace, f"{root}/lucius/acme/a")
        assert Input(reach, f"{root}/lucius/acme/a").read() == b"new"
        storages.close()


def test_inputs_come_from_blobs_and_files_whatever_the_workspace_is(
    blob_stage: BlobStage, blobs: StorageAccount, tmp_path: Path
) -> None:
    container = blob_stage.folder("")
    for name in ("scans", "mail", "secret"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_bytes(name.encode())
        blob_stage.put(f"{container}{name}/a", name.encode())
    remote = [f"{container}scans", f"{container}mail/"]
    local = [str(tmp_path / "scans"), (tmp_path / "mail").as_uri()]
    for root in (blob_stage.root, str(tmp_path / "root")):
        storages = open_storages(root, [*remote, *local], blobs)
        reach = storages.of_job("acme", "job_1")
        assert reach.schemes == {"az", "file", "http", "https", "s3"}
        for base in (container, f"{tmp_path.as_uri()}/"):
            assert Input(reach, f"{base}scans/a").read() == b"scans"
            assert Input(reach, f"{base}mail/a").read() == b"mail"
            with raises(ErrorCode.INPUT_FORBIDDEN, "leads out"):
                Input(reach, f"{base}secret/a").open()
        with raises(ErrorCode.INPUT_FORBIDDEN, "leads out"):
            Input(reach, "az://another/a").open()
        storages.close()


@pytest.mark.parametrize("is_input", [False, True])
def test_blobs_without_an_account_are_told_what_to_set(tmp_path: Path, is_input: bool) -> None:
    root, inputs = ("az://work/a", [])
    if is_input:
        root, inputs = str(tmp_path), [root]
    with pytest.raises(ValueError, match="set LUCIUS_BLOB_CONNECTION or LUCIUS_BLOB_ENDPOINT"):
        open_storages(root, inputs)


@pytest.mark.parametrize("root", ["az://Work/a", "az://work/../a", "az:work", "az://work/a?b"])
def test_a_root_that_names_no_folder_of_blobs_is_refused(
    root: str, blobs: StorageAccount, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match="az://container/folder"):
        open_storages(root, blobs=blobs)
    with pytest.raises(ValueError, match="az://container/folder"):
        open_storages(str(tmp_path), [root], blobs)


def test_blobs_without_their_packages_are_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch, blobs: StorageAccount
) -> None:
    for module in [name for name in sys.modules if name.startswith(BLOBS)]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "azure.storage.blob", None)
    with pytest.raises(ValueError, match=r"pip install 'lucius-sdk\[azure\]'"):
        open_storages("az://work/a", blobs=blobs)


def test_a_service_of_blobs_that_is_away_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    signed = "BlobEndpoint=http://127.0.0.1:9/a;SharedAccessSignature=sv=1&sig=hidden"
    with raises(ErrorCode.STORAGE_UNAVAILABLE, "^(?!.*hidden)"):
        open_storages("az://work/a", blobs=StorageAccount(Secret(signed)))


def test_the_workspace_comes_before_other_readers(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "lucius/acme").mkdir(parents=True)
        (folder / "lucius/acme/a").write_bytes(folder.name.encode())
    reach = Storages(LocalStorage(first), [LocalStorage(second)]).of_job("acme", "job_1")
    assert Input(reach, (first / "lucius/acme/a").as_uri()).read() == b"first"
    with raises(ErrorCode.INPUT_FORBIDDEN):
        Input(reach, (second / "lucius/acme/a").as_uri()).open()


def test_places_of_a_scheme_that_has_no_root_are_forbidden(tmp_path: Path) -> None:
    reach = Storages(LocalStorage(tmp_path)).of_job("acme", "job_1")
    for uri in ("az://inbox/a", "s3://inbox/a", "file:///srv/a"):
        with raises(ErrorCode.INPUT_FORBIDDEN, "LUCIUS_INPUT_ROOTS"):
            Input(reach, uri).open()
        with raises(ErrorCode.OUTPUT_FORBIDDEN, "LUCIUS_OUTPUT_ROOTS"):
            publish(reach, Ref(uri=uri), b"", fence())


@pytest.mark.parametrize("uri", ["gs://bucket/a", "https://host/a", "artifact://a", "http://[::"])
def test_places_that_nothing_can_be_published_to_are_refused(tmp_path: Path, uri: str) -> None:
    reach = open_storages(str(tmp_path), output_roots=[str(tmp_path)]).of_job("acme", "job_1")
    with raises(ErrorCode.OUTPUT_UNSUPPORTED):
        publish(reach, Ref(uri=uri), b"", fence())


def test_s3_without_its_package_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    for roots in ([], ["s3://bucket"]):
        storages = open_storages(str(tmp_path), roots, output_roots=roots)
        reach = storages.of_job("acme", "job_1")
        with raises(ErrorCode.INPUT_INVALID, r"pip install 'lucius-sdk\[s3\]'"):
            Input(reach, "s3://bucket/a").open()
        with raises(ErrorCode.OUTPUT_UNSUPPORTED, r"pip install 'lucius-sdk\[s3\]'"):
            publish(reach, Ref(uri="s3://bucket/a"), b"", fence())


def test_a_workspace_that_is_away_is_told(tmp_path: Path) -> None:
    storages = Storages(LocalStorage(tmp_path / "absent"))
    with raises(ErrorCode.STORAGE_UNAVAILABLE, "absent"):
        storages.check()
