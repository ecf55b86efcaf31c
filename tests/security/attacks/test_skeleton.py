"""What a cloned repository, a package index or a moved tag tries to bring into a service."""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml

from lucius_cli.failures import EnvironmentFailed, Unsuitable
from lucius_cli.skeleton import BASELINE, bake, rewrite
from lucius_cli.skeleton.project import Project
from lucius_cli.skeleton.template import find_template, read_template
from tests.cli.shell import Shell
from tests.skeleton.projects import MAKEFILE, MAKEFILE_BEFORE, files_in, fresh, older, run

ROOT = Path(__file__).parents[3]
PRIVATE = "not of this project\n"


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Shell:
    monkeypatch.chdir(tmp_path)
    return Shell(monkeypatch, capfd)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file of whoever clones the repository."""
    file = tmp_path / "home" / ".profile"
    file.parent.mkdir()
    file.write_text(PRIVATE)
    return file


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return older(fresh(tmp_path / "cloned"), {"Makefile": MAKEFILE_BEFORE})


def everything(folder: Path) -> dict[str, bytes]:
    return files_in(folder)


@pytest.mark.parametrize("planted", [".Makefile.new", f".{BASELINE}.new"])
def test_a_link_in_the_place_of_a_file_that_update_once_wrote_first_is_not_followed(
    shell: Shell, project: Path, outside: Path, planted: str
) -> None:
    (project / planted).symlink_to(outside)
    assert shell("update", "cloned").code == 0
    assert (project / "Makefile").read_text() == MAKEFILE
    assert outside.read_text() == PRIVATE


@pytest.mark.parametrize("depth", ["deploy", "deploy/chart", "deploy/chart/templates"])
@pytest.mark.parametrize("target", ["outside", "inside", "nowhere"])
def test_a_link_in_the_place_of_any_folder_is_refused_by_its_name(
    shell: Shell, project: Path, outside: Path, depth: str, target: str
) -> None:
    older(project, {"deploy/chart/templates/_values.tpl": "as it was\n"})
    leads_to = {
        "outside": outside.parent / "chart",
        "inside": project / "moved",
        "nowhere": outside.parent / "missing",
    }[target]
    if target == "nowhere":
        shutil.rmtree(project / depth)
    else:
        (project / depth).rename(leads_to)
    (project / depth).symlink_to(leads_to)
    before = everything(outside.parent)
    told = shell("update", "cloned")
    assert told.code == 2
    assert f"{depth}, which is a symbolic link" in told.err
    assert "deploy/chart/templates/_values.tpl" in told.err
    assert everything(outside.parent) == before
    assert not (outside.parent / "missing").exists()
    assert (project / "Makefile").read_text() == MAKEFILE_BEFORE


def test_nothing_is_deleted_through_a_link(shell: Shell, project: Path, outside: Path) -> None:
    older(project, {"old/.profile": PRIVATE, "gone": PRIVATE})
    shutil.rmtree(project / "old")
    (project / "old").symlink_to(outside.parent)
    assert shell("update", "cloned").code == 2
    (project / "old").unlink()
    (project / "gone").unlink()
    (project / "gone").symlink_to(outside)
    assert "no regular file" in shell("update", "cloned").out
    assert outside.read_text() == PRIVATE


def test_a_record_that_is_a_link_is_neither_read_nor_written(
    shell: Shell, project: Path, outside: Path
) -> None:
    shutil.move(project / BASELINE, outside.parent / "record.json")
    (project / BASELINE).symlink_to(outside.parent / "record.json")
    before = (outside.parent / "record.json").read_bytes()
    told = shell("update", "cloned")
    assert (told.code, BASELINE in told.err) == (2, True)
    assert (outside.parent / "record.json").read_bytes() == before


@pytest.mark.parametrize(
    "path",
    [
        "../home/.profile",
        "/etc/hosts",
        "a/../../home/.profile",
        ".git/config",
        ".GIT/config",
        "..",
        "",
    ],
)
def test_a_record_names_nothing_outside_the_project_nor_what_git_keeps(
    shell: Shell, project: Path, outside: Path, path: str
) -> None:
    record = json.loads((project / BASELINE).read_text())
    record["files"][path] = PRIVATE
    (project / BASELINE).write_text(json.dumps(record))
    (project / ".git").mkdir()
    (project / ".git/config").write_text(PRIVATE)
    assert shell("update", "cloned").code == 2
    assert outside.read_text() == PRIVATE
    assert (project / ".git/config").read_text() == PRIVATE


@pytest.mark.parametrize("verb", ["read", "put", "delete"])
def test_no_verb_of_a_project_follows_a_link(project: Path, outside: Path, verb: str) -> None:
    (project / "leaf").symlink_to(outside)
    (project / "folder").symlink_to(outside.parent)
    found = Project(project)
    for path in ("leaf", "folder/.profile", "folder/new"):
        arguments = {"read": (path,), "put": (path, "forged"), "delete": (path, None)}[verb]
        with pytest.raises(Unsuitable, match="symbolic link"):
            getattr(found, "read" if verb == "read" else "put")(*arguments)
    assert outside.read_text() == PRIVATE
    assert not (outside.parent / "new").exists()


def test_writing_the_shared_files_anew_follows_no_link(project: Path, outside: Path) -> None:
    (project / "Dockerfile").unlink()
    (project / "Dockerfile").symlink_to(outside)
    with pytest.raises(Unsuitable, match="Dockerfile leads through"):
        rewrite(project, {})
    assert outside.read_text() == PRIVATE


@pytest.mark.parametrize("exists", [True, False])
def test_a_new_service_is_not_made_where_a_link_leads(
    shell: Shell, tmp_path: Path, exists: bool
) -> None:
    elsewhere = tmp_path / "elsewhere"
    if exists:
        elsewhere.mkdir()
    (tmp_path / "word-count").symlink_to(elsewhere)
    told = shell("new", "word-count")
    assert (told.code, "symbolic link" in told.err) == (2, True)
    assert not elsewhere.exists() or not any(elsewhere.iterdir())


def test_a_template_bakes_no_file_of_this_machine(tmp_path: Path, outside: Path) -> None:
    shutil.copytree(find_template().folder, tmp_path / "template")
    template = read_template(tmp_path / "template")
    (tmp_path / "template/{{cookiecutter.service_name}}/stolen").symlink_to(outside)
    with pytest.raises(EnvironmentFailed, match="stolen is a symbolic link"):
        bake({"service_name": "word-count"}, template)


def test_git_runs_nothing_that_a_repository_below_the_folder_names(
    shell: Shell, project: Path, tmp_path: Path
) -> None:
    """A folder with the files of a bare repository is one to git: its settings name a program."""
    run("git", "init", "--quiet", "--bare", str(project), cwd=tmp_path)
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    run("git", "config", "core.fsmonitor", str(program), cwd=project)
    run("git", "config", "core.bare", "false", cwd=project)
    run("git", "config", "core.worktree", str(project), cwd=project)
    shell("update", "cloned")
    assert not ran.exists()
    assert os.access(program, os.X_OK)


OURS, FOREIGN = "0.1.0", "99.0.0"
PIN = "deploy/pin_sdk.py"


def wheel(
    folder: Path, version: str, whose: str, name: str = "lucius-sdk", needs: str = ""
) -> Path:
    """A wheel that leaves a file which says whose it is."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('-', '_')}-{version}"
    required = f"Requires-Dist: {needs}\n" if needs else ""
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    extras = "Provides-Extra: azure\nProvides-Extra: redis\n"
    files = {
        f"{name.replace('-', '_')}.txt": whose,
        f"{stem}.dist-info/METADATA": metadata + extras + required,
        f"{stem}.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{stem}.dist-info/RECORD"] = "".join(f"{path},,\n" for path in files)
    path = folder / f"{stem}-py3-none-any.whl"
    with ZipFile(path, "w") as packed:
        for place, text in files.items():
            packed.writestr(place, text)
    return path


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A package index on which somebody else has taken the name, with every version one may want,
    and has a package that asks for it."""
    simple = tmp_path / "index"
    for version in (OURS, "2.0.0", FOREIGN):
        wheel(simple / "lucius-sdk", version, "foreign")
    wheel(simple / "helper", "1.0", "foreign", "helper", f"lucius-sdk=={FOREIGN}")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=simple))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


class Build:
    """The first stage of the service's image, without a container engine: its RUN lines, with an
    environment in the place of /opt/venv and a folder in the place of /build."""

    def __init__(self, service: Path, folder: Path, index: str) -> None:
        self.service, self.folder, self.index = service, folder, index
        venv.create(folder / "venv", with_pip=False)
        shutil.rmtree(service / "wheels")
        wheel(service / "wheels", OURS, "ours")

    def pin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run(sys.executable, PIN, *arguments, cwd=self.service)

    def install(self, *commands: str) -> subprocess.CompletedProcess[str]:
        """What the last command says, or the first that fails."""
        build = self.folder / "build"
        build.mkdir(exist_ok=True)
        shutil.copy(self.service / "requirements.txt", build)
        shutil.copytree(self.service / "wheels", build / "wheels", dirs_exist_ok=True)
        for pinned in build.glob("wheels/lucius-sdk.txt"):
            pinned.write_text(pinned.read_text().replace("file:///build/", f"{build.as_uri()}/"))
        for command in commands or pip_lines(self.service):
            done = self._pip(command, build)
            if done.returncode != 0:
                break
        return done

    def _pip(self, command: str, build: Path) -> subprocess.CompletedProcess[str]:
        pip, *arguments = shlex.split(command)
        assert pip == "/opt/venv/bin/pip"
        python = str(self.folder / "venv/bin/python")
        return run(
            *(sys.executable, "-m", "pip", "--python", python, *arguments),
            cwd=build,
            PIP_INDEX_URL=self.index,
            PIP_CONFIG_FILE=os.devnull,
            PIP_DISABLE_PIP_VERSION_CHECK="1",
            PIP_RETRIES="0",
            NO_PROXY="127.0.0.1",
            no_proxy="127.0.0.1",
        )

    @property
    def installed(self) -> set[str]:
        return {found.read_text() for found in self.folder.glob("venv/**/lucius_sdk.txt")}


def pip_lines(service: Path) -> list[str]:
    text = (service / "Dockerfile").read_text().replace("\\\n", " ")
    lines: list[str] = re.findall(r"^RUN (.*pip install .*)$", text, re.MULTILINE)
    assert len(lines) == 2
    return lines


@pytest.fixture
def build(tmp_path: Path, index: str) -> Build:
    return Build(fresh(tmp_path / "service"), tmp_path, index)


@pytest.mark.check
def test_an_image_gets_no_sdk_of_an_index_whatever_its_version(build: Build) -> None:
    assert build.pin("/a/checkout").returncode == 0
    done = build.install()
    assert done.returncode == 0, done.stderr
    assert build.installed == {"ours"}


@pytest.mark.check
def test_without_the_pin_the_index_would_win(build: Build) -> None:
    pip = "/opt/venv/bin/pip install --find-links wheels --requirement requirements.txt"
    assert build.install(pip).returncode == 0
    assert build.installed == {"foreign"}


@pytest.mark.check
@pytest.mark.parametrize("required", ["lucius-sdk>=2", "lucius-sdk\nhelper"])
def test_what_the_pinned_wheel_does_not_satisfy_is_not_taken_from_an_index(
    build: Build, required: str
) -> None:
    assert build.pin("/a/checkout").returncode == 0
    (build.service / "requirements.txt").write_text(f"{required}\n")
    assert build.install().returncode != 0
    assert build.installed == {"ours"}


@pytest.mark.check
def test_a_wheel_that_was_replaced_after_it_was_pinned_is_refused(build: Build) -> None:
    assert build.pin("/a/checkout").returncode == 0
    wheel(build.service / "wheels", OURS, "foreign")
    done = build.install()
    assert done.returncode != 0
    assert "HASH" in done.stderr.upper()
    assert build.installed == set()


@pytest.mark.check
def test_an_image_without_a_pin_is_not_built(build: Build) -> None:
    assert build.install().returncode != 0
    assert build.installed == set()


@pytest.fixture
def service(tmp_path: Path) -> Path:
    made = fresh(tmp_path / "service")
    wheel(made / "wheels", OURS, "ours")
    return made


@pytest.mark.parametrize("source", ["lucius-sdk", "lucius-sdk>=0.1", "lucius_sdk[azure]==0.1.0"])
def test_a_bare_name_is_pinned_only_with_the_digest_of_its_wheel(
    service: Path, source: str
) -> None:
    (found,) = (service / "wheels").glob("*.whl")
    digest = hashlib.sha256(found.read_bytes()).hexdigest()
    told = run(sys.executable, PIN, source, cwd=service)
    assert told.returncode != 0
    assert "LUCIUS_SDK_SHA256" in told.stderr
    assert run(sys.executable, PIN, source, "0" * 64, cwd=service).returncode != 0
    assert not (service / "wheels/lucius-sdk.txt").exists()
    assert run(sys.executable, PIN, source, digest, cwd=service).returncode == 0
    line = f"lucius-sdk @ file:///build/wheels/{found.name} --hash=sha256:{digest}\n"
    assert (service / "wheels/lucius-sdk.txt").read_text() == line
    assert (service / "wheels/constraint.txt").read_text() == f"lucius-sdk=={OURS}\n"


@pytest.mark.parametrize(
    "source",
    [
        "/a/checkout",
        "../..",
        ".",
        "dist/lucius_sdk-0.1.0-py3-none-any.whl",
        "git+https://host/lucius@0123abc",
        "https://host/lucius_sdk-0.1.0-py3-none-any.whl",
    ],
)
def test_what_is_more_than_a_name_is_pinned_as_it_was_built(service: Path, source: str) -> None:
    assert run(sys.executable, PIN, source, cwd=service).returncode == 0


@pytest.mark.parametrize("name", ["evil-1.0-py3-none-any.whl", "lucius_sdk-9-py3-none-any.whl"])
def test_no_other_wheel_comes_along(service: Path, name: str) -> None:
    (service / "wheels" / name).write_bytes(b"")
    told = run(sys.executable, PIN, "/a/checkout", cwd=service)
    assert told.returncode != 0
    assert "must hold one wheel" in told.stderr


SERVICES = [find_template().folder / "{{cookiecutter.service_name}}"]
SERVICES += sorted(place.parent for place in (ROOT / "examples").glob("*/Dockerfile"))
_COMMIT = re.compile(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}")
_IMAGE = re.compile(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}")


def unpinned_actions(workflow: str) -> list[str]:
    """Those that are not named by a commit, with their release in a comment."""
    jobs = yaml.safe_load(workflow)["jobs"].values()
    used = [step["uses"] for job in jobs for step in job["steps"] if "uses" in step]
    used += [job["uses"] for job in jobs if "uses" in job]
    released = set(re.findall(r"uses: (\S+) # v\d", workflow))
    return [each for each in used if not _COMMIT.fullmatch(each) or each not in released]


def unpinned_images(dockerfile: str) -> list[str]:
    """Those that are not named by a digest: of a stage, or of another image that is copied from."""
    stages = set(re.findall(r"^FROM \S+ AS (\S+)", dockerfile, re.MULTILINE))
    named = re.findall(r"^FROM (?:--\S+ )*(\S+)", dockerfile, re.MULTILINE)
    named += re.findall(r"^COPY .*--from=(\S+)", dockerfile, re.MULTILINE)
    return [each for each in named if each not in stages and not _IMAGE.fullmatch(each)]


def test_the_skeleton_and_every_example_are_looked_at() -> None:
    assert {place.name for place in SERVICES[1:]} == {"ocr", "embedding", "sis"}


@pytest.mark.parametrize("service_folder", SERVICES, ids=lambda folder: folder.name)
def test_actions_and_base_images_are_pinned_by_digest(service_folder: Path) -> None:
    workflows = list(service_folder.glob(".github/workflows/*"))
    assert workflows
    for workflow in workflows:
        assert unpinned_actions(workflow.read_text()) == []
    assert unpinned_images((service_folder / "Dockerfile").read_text()) == []


@pytest.mark.parametrize(
    "uses",
    [
        "actions/checkout@v4",
        "actions/checkout@main",
        f"actions/checkout@{'a' * 39}",
        "a/b",
        f"actions/checkout@{'a' * 40}",
    ],
)
def test_an_unpinned_action_is_found(uses: str) -> None:
    assert unpinned_actions(f"jobs:\n  a:\n    steps:\n      - uses: {uses}\n") == [uses]


@pytest.mark.parametrize(
    "image", ["python", "python:3.12-slim", "python:latest@sha256:abc", f"python@sha256:{'a' * 64}"]
)
def test_an_unpinned_image_is_found(image: str) -> None:
    assert unpinned_images(f"FROM {image} AS build\nFROM build\n") == [image]
    assert unpinned_images(f"COPY --from={image} /a /a\n") == [image]
