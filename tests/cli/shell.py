"""How a test types a command."""

import io
import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lucius_cli.main import main

LUCIUS = str(Path(sys.executable).with_name("lucius"))
"""What a person types. `python -m lucius_cli` may end by the signal of an interrupt, whatever its
exit code is: Python remembers one that came while a string was executed, as for a dataclass."""


class Run(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Shell:
    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]
    ) -> None:
        self._monkeypatch = monkeypatch
        self._captured = captured

    def export(self, **variables: str) -> None:
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

    def type(self, text: str) -> None:
        """What the next command reads from its standard input."""
        self._monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    def __call__(self, *arguments: str) -> Run:
        with pytest.raises(SystemExit) as exit_:
            main(arguments)
        out, err = self._captured.readouterr()
        return Run(int(exit_.value.code or 0), out, err)
