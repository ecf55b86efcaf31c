"""`import lucius_sdk` stays light: a service pays for what it uses, when it uses it."""

import subprocess
import sys

import pytest

PROBE = """
import sys
before = set(sys.modules)
import {modules}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(name for name in loaded - set(sys.stdlib_module_names) if name[0] != "_"))
"""
PYDANTIC = {
    "pydantic",
    "pydantic_core",
    "annotated_types",
    "typing_extensions",
    "typing_inspection",
}
OURS = {"lucius_contract", "lucius_logs", "lucius_outbox", "lucius_sdk"}


def loaded_with(modules: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROBE.format(modules=modules)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


@pytest.mark.parametrize("modules", ["lucius_sdk", "lucius_sdk.handlers, lucius_sdk.workspace_io"])
def test_the_face_of_the_sdk_loads_pydantic_and_nothing_else(modules: str) -> None:
    assert loaded_with(modules) - PYDANTIC - {"rfc8785"} <= OURS


def test_the_orchestrator_is_never_loaded() -> None:
    loaded = loaded_with("lucius_sdk.runtime.program")
    assert loaded.isdisjoint({"lucius_orchestrator", "servicebus_emulator", "fastapi", "typer"})
    assert loaded.isdisjoint({"azure", "redis"})


def test_who_only_reads_uris_of_blobs_does_without_the_packages_of_azure() -> None:
    loaded = loaded_with("lucius_sdk.workspace_io.opening, lucius_sdk.workspace_io.blob.places")
    assert "azure" not in loaded


def test_who_meets_no_object_of_s3_does_without_its_package() -> None:
    loaded = loaded_with("lucius_sdk.workspace_io.opening, lucius_sdk.workspace_io.s3.storage")
    assert loaded.isdisjoint({"boto3", "botocore"})
