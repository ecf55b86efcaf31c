"""The orchestrator's settings, as the commands need them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lucius_cli.failures import EnvironmentFailed

if TYPE_CHECKING:
    from lucius_orchestrator.settings import Settings, SettingsError


def settings_of(environ: Mapping[str, str]) -> "Settings":
    from lucius_orchestrator.settings import SettingsError, load_settings

    try:
        return load_settings(environ)
    except SettingsError as error:
        raise EnvironmentFailed("\n".join(problem_lines(error))) from error


def problem_lines(error: "SettingsError") -> list[str]:
    return [f"{problem.variable}: {problem.message}" for problem in error.problems]
