"""What an operator sets for a service: environment variables, read once when it starts.

`SETTINGS` is the table of all of them; reading and the reference page follow it.
"""

from lucius_sdk.settings.load import effective, load_settings
from lucius_sdk.settings.service_settings import ServiceSettings
from lucius_sdk.settings.table import SETTINGS
from lucius_settings.problems import SettingProblem, SettingsError
from lucius_settings.secret import Secret

__all__ = [
    "SETTINGS",
    "Secret",
    "ServiceSettings",
    "SettingProblem",
    "SettingsError",
    "effective",
    "load_settings",
]
