"""What is wrong with the variables that were set."""

from collections.abc import Iterable
from typing import NamedTuple


class SettingProblem(NamedTuple):
    """The message says what is wrong and what is allowed. It never repeats a secret."""

    variable: str
    message: str

    def __str__(self) -> str:
        return f"{self.variable}: {self.message}"


class SettingsError(Exception):
    """The process cannot start with these variables; `problems` names all that has to change."""

    def __init__(self, problems: Iterable[SettingProblem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))
