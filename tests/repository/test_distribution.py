"""What `pip install lucius-sdk` brings."""

import re
import subprocess
import sys
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from docs.generator import ROOT

EXTRAS = {
    "all",
    "azure",
    "examples",
    "orchestrator",
    "postgres",
    "redis",
    "s3",
    "skeleton",
    "temporal",
    "testkit",
    "vectors",
}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (file,) = folder.glob("*.whl")
    return zipfile.ZipFile(file)


def test_the_contract_travels_as_data_too(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    for folder in ("vectors", "schemas"):
        for path in (ROOT / "lucius_contract" / folder).iterdir():
            assert f"lucius_contract/{folder}/{path.name}" in names
    assert "lucius_contract/py.typed" in names


@pytest.mark.parametrize("place", ["lucius_outbox", "lucius_artifacts/catalogue"])
def test_tables_travel_with_their_migrations(wheel: zipfile.ZipFile, place: str) -> None:
    files = {str(path.relative_to(ROOT)) for path in ROOT.glob(f"{place}/*/migrations/*.sql")}
    assert len(files) >= 2
    assert files <= set(wheel.namelist())


def test_what_the_demo_and_the_skeleton_need_travels_and_nothing_of_this_machine(
    wheel: zipfile.ZipFile,
) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "examples", "skeleton_template"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split("\n")
    folders = ("examples/ocr/", "examples/embedding/", "examples/sis/", "examples/documents/")
    wanted = {
        f"lucius_cli/{path}"
        for path in tracked
        if path.startswith((*folders, "skeleton_template/"))
    }
    names = {
        name
        for name in wheel.namelist()
        if name.startswith(("lucius_cli/examples/", "lucius_cli/skeleton_template/"))
    }
    assert wanted
    assert names == wanted


def test_nothing_travels_that_is_not_a_package_of_ours(wheel: zipfile.ZipFile) -> None:
    roots = {name.partition("/")[0] for name in wheel.namelist()}
    packages = {path.parent.name for path in ROOT.glob("lucius_*/__init__.py")}
    packages |= {"servicebus_emulator", "orchestrator_mock", "contract_tests"}
    assert {root for root in roots if not root.endswith(".dist-info")} == packages


def test_the_extras_are_those_that_were_promised(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("METADATA")]
    metadata = Parser().parsestr(wheel.read(name).decode())
    assert set(metadata.get_all("Provides-Extra", [])) == EXTRAS


def test_the_locks_pin_everything_by_hash_and_name_no_address() -> None:
    for lock in (ROOT / "requirements").glob("*.lock"):
        text = lock.read_text()
        assert "://" not in text
        pins = re.findall(r"^[a-z0-9][^ \n]*==", text, flags=re.MULTILINE)
        assert pins
        assert all(
            block.count("--hash=sha256:") > 0
            for block in re.split(r"^(?=[a-z0-9])", text, flags=re.MULTILINE)
            if block.strip()
        )


def test_every_direct_dependency_is_in_the_lock() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = [*project["project"]["dependencies"], *project["dependency-groups"]["dev"]]
    locked = (ROOT / "requirements" / "dev.lock").read_text()
    for requirement in declared:
        name = re.split(r"[<>=\[ ]", requirement)[0].replace(".", "-")
        assert re.search(rf"^{re.escape(name)}==", locked, flags=re.MULTILINE), name


def test_the_readme_leads_to_pages_that_exist() -> None:
    for page in ("README.md", "CONTRIBUTING.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", (ROOT / page).read_text()):
            assert (ROOT / Path(target)).exists(), target
