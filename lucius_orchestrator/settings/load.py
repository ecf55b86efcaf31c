"""From environment variables to settings, or to everything that is wrong with them.

A variable that is empty, or blank, counts as not set.
"""

import re
from collections.abc import Mapping
from typing import Any

from lucius_contract.refs import RefPolicy
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.settings.info import SettingInfo, Use
from lucius_orchestrator.settings.kinds import Refused
from lucius_orchestrator.settings.problems import SettingProblem, SettingsError
from lucius_orchestrator.settings.relations import Values, completed, contradictions, in_vain
from lucius_orchestrator.settings.remarks import idle, unknown
from lucius_orchestrator.settings.settings import Settings
from lucius_orchestrator.settings.table import SETTINGS

# Half surrogates stand for bytes of the environment that are no UTF-8.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_ORDER = {info.variable: place for place, info in enumerate(SETTINGS)}


def load_settings(environ: Mapping[str, str]) -> Settings:
    """The settings, or SettingsError with every problem that there is."""
    values, problems = _read_all(environ)
    problems += contradictions(values)
    if problems:
        raise SettingsError(sorted(problems, key=lambda problem: _ORDER[problem.variable]))
    return _settings(completed(values), (*idle(environ), *unknown(environ), *in_vain(values)))


def _read_all(environ: Mapping[str, str]) -> tuple[Values, list[SettingProblem]]:
    values: Values = {}
    problems: list[SettingProblem] = []
    for info in SETTINGS:
        if info.use is not Use.READ:
            continue
        try:
            value = _read(info, environ)
        except Refused as refused:
            problems.append(SettingProblem(info.variable, str(refused)))
        else:
            if info.field is not None:
                values[info.field] = value
    return values, problems


def _read(info: SettingInfo, environ: Mapping[str, str]) -> Any:
    text = environ.get(info.variable, "").strip() or info.default
    if text is None:
        return info.kind.empty
    if _UNPRINTABLE.search(text):
        raise Refused(f"holds characters that cannot be printed; must be {info.kind.rule}")
    return info.kind.read(text)


def _settings(values: Values, warnings: tuple[str, ...]) -> Settings:
    plain = {field: value for field, value in values.items() if "." not in field}
    refs = RefPolicy(**_group(values, "refs"))
    policy = StepPolicy(reply_via=plain["reply_via"], **_group(values, "step_policy"))
    return Settings(**plain, refs=refs, step_policy=policy, warnings=warnings)


def _group(values: Values, name: str) -> dict[str, Any]:
    split = {tuple(field.split(".")): value for field, value in values.items()}
    return {path[-1]: value for path, value in split.items() if path[0] == name}
