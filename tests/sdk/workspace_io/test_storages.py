"""The storages that settings name."""

from pathlib import Path

import pytest

from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import Input, LocalStorage, Storages, open_storages
from tests.sdk.workspace_io.stage import raises


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
    assert storages.schemes == {"file", "http", "https"}
    assert Input(storages, (tmp_path / "scans/a.pdf").as_uri()).read() == b"%PDF"


@pytest.mark.parametrize("root", ["az://container/a", "https://host/a", "file://host/a"])
def test_other_roots_are_refused_with_what_is_allowed(root: str) -> None:
    with pytest.raises(ValueError, match="give a path or a uri"):
        open_storages(root)


def test_the_workspace_comes_before_other_readers(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
        (folder / "a").write_bytes(folder.name.encode())
    storages = Storages(LocalStorage(first), [LocalStorage(second)])
    assert Input(storages, (first / "a").as_uri()).read() == b"first"
    with raises(ErrorCode.INPUT_INVALID):
        Input(storages, (second / "a").as_uri()).open()


def test_a_workspace_that_is_away_is_told(tmp_path: Path) -> None:
    storages = Storages(LocalStorage(tmp_path / "absent"))
    with raises(ErrorCode.STORAGE_UNAVAILABLE, "absent"):
        storages.check()
