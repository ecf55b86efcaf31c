"""From environment variables to settings, or to everything that is wrong with them."""

from collections.abc import Mapping
from typing import Any

from lucius_contract.refs import RefPolicy
from lucius_orchestrator.domain.aggregate import StepPolicy
from lucius_orchestrator.domain.window import Limits
from lucius_orchestrator.settings.relations import completed, contradictions, in_vain
from lucius_orchestrator.settings.settings import ArtifactSettings, Settings
from lucius_orchestrator.settings.table import SETTINGS
from lucius_outbox.redaction import without_credentials
from lucius_settings.effective import EffectiveSetting, in_force
from lucius_settings.reading import Values, in_order, read_all
from lucius_settings.remarks import idle, unknown


def load_settings(environ: Mapping[str, str]) -> Settings:
    """The settings, or SettingsError with every problem that there is."""
    values, problems = read_all(SETTINGS, environ)
    problems += contradictions(values)
    if problems:
        raise in_order(SETTINGS, problems)
    remarks = (*idle(SETTINGS, environ), *unknown(SETTINGS, environ), *in_vain(values))
    return _settings(completed(values), remarks)


def effective(settings: Settings, environ: Mapping[str, str]) -> list[EffectiveSetting]:
    """What is in force, for `lucius config`."""
    return in_force(SETTINGS, settings, environ, without_credentials)


def _settings(values: Values, warnings: tuple[str, ...]) -> Settings:
    plain = {field: value for field, value in values.items() if "." not in field}
    refs = RefPolicy(**_group(values, "refs"))
    policy = StepPolicy(reply_via=plain["reply_via"], **_group(values, "step_policy"))
    artifacts = ArtifactSettings(**_group(values, "artifacts"))
    return Settings(
        **plain,
        refs=refs,
        step_policy=policy,
        artifacts=artifacts,
        dispatch_window=Limits(**_group(values, "dispatch_window")),
        warnings=warnings,
    )


def _group(values: Values, name: str) -> dict[str, Any]:
    split = {tuple(field.split(".")): value for field, value in values.items()}
    return {path[-1]: value for path, value in split.items() if path[0] == name}
