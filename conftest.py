"""Loads what runs the tests (`tests/runner`), and executes every code block of the documentation.

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
FOLDER = "__folder__"  # a name that no page uses

pytest_plugins = [
    "tests.runner.tiers",
    "tests.runner.costs",
    "tests.runner.limits",
    "tests.runner.progress",
    "tests.runner.servers",
    "tests.runner.workers",
]


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
