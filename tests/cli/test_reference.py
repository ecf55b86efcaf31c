"""The reference page of the command names all that the command has."""

from collections.abc import Iterator

import pytest
import typer.main
from typer.core import TyperGroup

from docs.generator import ROOT
from lucius_cli.main import app
from tests.cli.shell import Shell

PAGE = (ROOT / "docs/reference/command.md").read_text(encoding="utf-8")


def commands() -> Iterator[tuple[str, list[str]]]:
    """Each command as it is typed, with its options."""
    todo = [("lucius", typer.main.get_command(app))]
    while todo:
        name, command = todo.pop()
        if isinstance(command, TyperGroup):
            todo += [(f"{name} {word}", inner) for word, inner in command.commands.items()]
        else:
            options = [o for p in command.params for o in p.opts if o.startswith("--")]
            yield name, options


@pytest.mark.parametrize(("name", "options"), list(commands()))
def test_a_command_and_its_options_are_on_the_page(name: str, options: list[str]) -> None:
    assert f"`{name}" in PAGE
    for option in options:
        assert f"`{option}" in PAGE, option


def test_it_says_which_version_it_is(shell: Shell) -> None:
    run = shell("--version")
    assert (run.code, run.out.split()[0], run.err) == (0, "lucius", "")
