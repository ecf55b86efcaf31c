"""From environment variables to the settings of a service, or to everything that is wrong."""

from collections.abc import Iterator, Mapping
from os.path import abspath
from pathlib import Path

from lucius_sdk.settings.service_settings import ServiceSettings
from lucius_sdk.settings.table import KNOWN, SETTINGS
from lucius_settings.effective import EffectiveSetting, in_force
from lucius_settings.problems import SettingProblem
from lucius_settings.reading import Values, in_order, read_all
from lucius_settings.remarks import unknown
from lucius_settings.secret import Secret

# The emulator of `lucius up` takes any key, but clients want one.
_LOCAL_BUS = Secret(
    "Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=local;SharedAccessKey=local;"
    "UseDevelopmentEmulator=true;"
)


def load_settings(environ: Mapping[str, str]) -> ServiceSettings:
    """The settings, or SettingsError with every problem that there is."""
    values, problems = read_all(SETTINGS, environ)
    problems += _contradictions(values)
    if problems:
        raise in_order(SETTINGS, problems)
    remarks = (*unknown(KNOWN, environ), *_risks(values))
    return ServiceSettings(**_completed(values), warnings=remarks)


def effective(settings: ServiceSettings, environ: Mapping[str, str]) -> list[EffectiveSetting]:
    """What is in force, without secrets."""
    return in_force(SETTINGS, settings, environ)


def _contradictions(values: Values) -> Iterator[SettingProblem]:
    if values.get("servicebus_connection") and values.get("servicebus_namespace"):
        yield SettingProblem(
            "LUCIUS_SERVICEBUS_NAMESPACE",
            "must not be set beside LUCIUS_SERVICEBUS_CONNECTION: a key or an identity, not both",
        )


def _risks(values: Values) -> Iterator[str]:
    if values["dedup_store"].reveal().startswith("memory:"):
        yield (
            "LUCIUS_DEDUP_STORE=memory: forgets what was done when the process ends, so work may"
            " be done twice; use sqlite: or redis:// for anything but tests"
        )


def _completed(values: Values) -> Values:
    """With the default that follows from other values, and with folders as they are now."""
    is_local = not values["servicebus_connection"] and not values["servicebus_namespace"]
    return values | {
        "servicebus_connection": _LOCAL_BUS if is_local else values["servicebus_connection"],
        "workspace_root": _absolute(values["workspace_root"]),
        "input_roots": tuple(map(_absolute, values["input_roots"])),
    }


def _absolute(folder: Path) -> Path:
    return Path(abspath(folder))
