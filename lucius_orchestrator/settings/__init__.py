"""What an operator sets: environment variables, read once when a process starts.

`SETTINGS` is the table of all of them; reading, the reference page and `lucius config` follow it.
"""

from lucius_orchestrator.settings.effective import EffectiveSetting, effective
from lucius_orchestrator.settings.info import SettingInfo, Use
from lucius_orchestrator.settings.load import load_settings
from lucius_orchestrator.settings.problems import SettingProblem, SettingsError
from lucius_orchestrator.settings.secret import Secret
from lucius_orchestrator.settings.settings import LogFormat, Settings, StorageBackend
from lucius_orchestrator.settings.table import SETTINGS

__all__ = [
    "SETTINGS",
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
