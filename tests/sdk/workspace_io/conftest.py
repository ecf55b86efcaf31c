"""A workspace on real files."""

from pathlib import Path

import pytest

from lucius_sdk.workspace_io import LocalStorage, StepFolder, Workspace
from tests.sdk.workspace_io.stage import WORKSPACE, Uri


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def storage(root: Path) -> LocalStorage:
    return LocalStorage(root)


@pytest.fixture
def uri(root: Path) -> Uri:
    return lambda path: f"{root.as_uri()}/{path}"


@pytest.fixture
def folder(storage: LocalStorage, uri: Uri) -> StepFolder:
    return StepFolder(storage, uri(WORKSPACE), "OCR", 1, 1)


@pytest.fixture
def workspace(folder: StepFolder) -> Workspace:
    return Workspace(folder)
