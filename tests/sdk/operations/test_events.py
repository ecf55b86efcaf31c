"""What a service logs stands in a table, with its level and its fields."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import lucius_sdk
from docs.generator.service_operations import service_operations_page
from lucius_sdk import health, tracing
from lucius_sdk.runtime import events

TABLE = {info.name: info for info in (*events.EVENTS, *health.EVENTS, *tracing.EVENTS)}
LEVELS = {
    "debug": "DEBUG",
    "info": "INFO",
    "warning": "WARNING",
    "error": "ERROR",
    "exception": "ERROR",
    "critical": "CRITICAL",
    "log": None,
}


class Logged(NamedTuple):
    """`level` is None where the code decides, `fields` are those that can be read off."""

    place: str
    event: str
    level: str | None
    fields: frozenset[str]


def logged() -> Iterator[Logged]:
    folder = Path(lucius_sdk.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(call, ast.Call) and is_log(call.func):
                yield read(call, f"{path.relative_to(folder)}:{call.lineno}")


def is_log(called: ast.expr) -> bool:
    return (
        isinstance(called, ast.Attribute)
        and called.attr in LEVELS
        and isinstance(called.value, ast.Name)
        and called.value.id in ("_log", "log", "logger", "logging")
    )


def read(call: ast.Call, place: str) -> Logged:
    assert isinstance(call.func, ast.Attribute)
    level = LEVELS[call.func.attr]
    event = call.args[0 if level else 1]
    assert isinstance(event, ast.Constant), f"{place} logs no fixed name"
    extra = next((word.value for word in call.keywords if word.arg == "extra"), None)
    return Logged(place, str(event.value), level, frozenset(literal_keys(extra)))


def literal_keys(extra: ast.expr | None) -> Iterator[str]:
    for node in ast.walk(extra) if extra is not None else ():
        if isinstance(node, ast.Dict):
            yield from (str(key.value) for key in node.keys if isinstance(key, ast.Constant))


LOGGED = list(logged())


@pytest.mark.parametrize("found", LOGGED, ids=lambda found: f"{found.place}-{found.event}")
def test_what_is_logged_is_in_the_table(found: Logged) -> None:
    info = TABLE[found.event]
    assert found.level is None or found.level in info.level.split(" or ")
    assert found.fields <= set(info.fields)


def test_the_table_holds_nothing_that_is_never_logged() -> None:
    assert TABLE.keys() == {found.event for found in LOGGED}


@pytest.mark.parametrize("name", TABLE)
def test_every_event_is_documented(name: str) -> None:
    rows = [row for row in service_operations_page().splitlines() if row.startswith(f"| `{name}`")]
    assert len(rows) == 1
