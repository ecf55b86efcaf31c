"""How tests are shared out, and that every code block in the documentation runs.

A file of tests belongs to one worker, but the conformance suite: there, each service does, and they
are spread out. Tests that kill engines under load are all one worker's: side by side, they would
take from each other the time in which jobs must end.

Every page runs in an empty folder of its own. Python blocks are executed. In `console` blocks each
line that begins with `$ ` is a command, and what follows is what it must print; `make` is not run
inside the tests, but its target must exist. `json` blocks must be JSON; `mermaid`, `text` and
`toml` blocks are for reading.
"""

import gc
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from sybil import Example, Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser

ROOT = Path(__file__).parent
CONFORMANCE = "contract_tests/test_rules.py"
CRASHES = "tests/crash/"
FOLDER = "__folder__"  # a name that no page uses


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block, with what it should print."""
    for part in ("\n" + text).split("\n$ ")[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected.strip()


def run_console(example: Example) -> None:
    for command, expected in commands(example.parsed):
        if command.startswith("make "):
            subprocess.run(["make", "-n", *command.split()[1:]], cwd=ROOT, check=True)
            continue
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
        run = subprocess.run(
            command,
            shell=True,
            cwd=example.namespace[FOLDER],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": path},
        )
        printed = (run.stdout + run.stderr).strip()
        assert printed == expected, f"{command}\nprinted\n{printed}\ninstead of\n{expected}"


def check_json(example: Example) -> None:
    json.loads(example.parsed)


def enter(namespace: dict[str, Any]) -> None:
    namespace[FOLDER] = tempfile.mkdtemp()
    os.chdir(namespace[FOLDER])


def leave(namespace: dict[str, Any]) -> None:
    os.chdir(ROOT)
    shutil.rmtree(namespace[FOLDER])


pytest_collect_file = Sybil(
    parsers=[
        PythonCodeBlockParser(),
        CodeBlockParser("console", run_console),
        CodeBlockParser("json", check_json),
    ],
    patterns=["*.md"],
    setup=enter,
    teardown=leave,
).pytest()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Thousands of tests are no garbage: they are not looked through while they are collected, a
    third of the time otherwise, nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadFileScheduling

    scheduler = LoadFileScheduling(config, log)
    scheduler._split_scope = share_of
    return scheduler


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """To judge a service is mostly to wait: spread out, so that others compute meanwhile."""
    shares: dict[str, list[pytest.Item]] = {}
    for item in items:
        shares.setdefault(share_of(item.nodeid), []).append(item)
    waiting = [share for name, share in shares.items() if name.startswith(CONFORMANCE)]
    others = [share for name, share in shares.items() if not name.startswith(CONFORMANCE)]
    gap = max(len(others) // (len(waiting) or 1), 1)
    for number, share in enumerate(waiting):
        others.insert(number * (gap + 1), share)
    items[:] = [item for share in others for item in share]


def share_of(nodeid: str) -> str:
    file, _, name = nodeid.partition("::")
    if file == CONFORMANCE:
        return file + name.partition(":")[0]
    return CRASHES if file.startswith(CRASHES) else file
