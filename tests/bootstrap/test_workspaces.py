"""Which workspaces are collected, by what the settings name."""

from pathlib import Path

import pytest

from lucius_artifacts.workspaces.azure_blob import AzureBlobWorkspaces
from lucius_artifacts.workspaces.files import FileWorkspaces
from lucius_orchestrator.bootstrap.artifacts import open_workspaces
from lucius_orchestrator.settings import load_settings

JOB = "job_019ad9c8b2007bc58143237a474fbb8b"
CONNECTION = (
    "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey=a2V5;EndpointSuffix=example.net"
)


async def test_the_embedded_default_collects_the_folders_of_its_workspace(tmp_path: Path) -> None:
    root = tmp_path / "a folder"
    (root / "workspace" / "lucius" / "acme" / JOB).mkdir(parents=True)
    workspaces = open_workspaces(load_settings({"LUCIUS_DATA_DIR": str(root)}))
    assert isinstance(workspaces, FileWorkspaces)
    assert [each.job_id async for each in workspaces.folders()] == [JOB]


@pytest.mark.parametrize(
    "given",
    [
        {"LUCIUS_WORKSPACE_RETENTION_DAYS": "0"},
        {"LUCIUS_WORKSPACE_ROOT": "az://work/jobs"},
    ],
)
def test_what_is_kept_for_ever_or_out_of_reach_is_left_alone(given: dict[str, str]) -> None:
    assert open_workspaces(load_settings(given)) is None


async def test_blobs_are_reached_with_the_account_of_the_artifacts() -> None:
    given = {
        "LUCIUS_WORKSPACE_ROOT": "az://work/jobs",
        "LUCIUS_ARTIFACTS_STORE": "azure_blob",
        "LUCIUS_ARTIFACTS_CONNECTION": CONNECTION,
    }
    workspaces = open_workspaces(load_settings(given))
    assert isinstance(workspaces, AzureBlobWorkspaces)
    await workspaces.close()
