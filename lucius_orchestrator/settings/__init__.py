"""What an operator sets: environment variables, read once when a process starts.

`SETTINGS` is the table of all of them; reading, the reference page and `lucius config` follow it.
"""

from lucius_orchestrator.settings.load import effective, load_settings
from lucius_orchestrator.settings.settings import (
    ArtifactSettings,
    ArtifactStore,
    CatalogueBackend,
    LogFormat,
    Settings,
    StorageBackend,
)
from lucius_orchestrator.settings.table import SETTINGS
from lucius_settings.effective import EffectiveSetting
from lucius_settings.info import SettingInfo, Use
from lucius_settings.problems import SettingProblem, SettingsError
from lucius_settings.secret import Secret

__all__ = [
    "SETTINGS",
    "ArtifactSettings",
    "ArtifactStore",
    "CatalogueBackend",
    "EffectiveSetting",
    "LogFormat",
    "Secret",
    "SettingInfo",
    "SettingProblem",
    "Settings",
    "SettingsError",
    "StorageBackend",
    "Use",
    "effective",
    "load_settings",
]
