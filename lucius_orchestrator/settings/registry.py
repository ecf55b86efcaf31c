"""Variables of protocols that are kept in Azure App Configuration instead of files."""

from datetime import timedelta

from lucius_settings.app_configuration import CONNECTION, ENDPOINT, KEY, LABEL, PREFIX
from lucius_settings.info import SettingInfo
from lucius_settings.kinds import seconds

_FILES = "none: files"
APP_CONFIGURATION = (
    SettingInfo(
        "LUCIUS_APP_CONFIGURATION_CONNECTION",
        "app_configuration_connection",
        CONNECTION,
        None,
        "The Azure App Configuration that holds protocols, tenants and defaults.",
        secret=True,
        unset=_FILES,
    ),
    SettingInfo(
        "LUCIUS_APP_CONFIGURATION_ENDPOINT",
        "app_configuration_endpoint",
        ENDPOINT,
        None,
        "The same by its address, with the managed identity of the process instead of a key.",
        unset=_FILES,
    ),
    SettingInfo(
        "LUCIUS_APP_CONFIGURATION_LABEL",
        "app_configuration_label",
        LABEL,
        None,
        "Of entries with the same key, the one with this label counts over the one without any.",
        unset="none: entries without a label alone",
    ),
    SettingInfo(
        "LUCIUS_APP_CONFIGURATION_PREFIX",
        "app_configuration_prefix",
        PREFIX,
        "lucius:",
        "What the keys begin with.",
    ),
    SettingInfo(
        "LUCIUS_APP_CONFIGURATION_SENTINEL",
        "app_configuration_sentinel",
        KEY,
        None,
        "The key, with the same label, whose change says that all others are to be read again.",
        unset="the prefix and `sentinel`",
    ),
    SettingInfo(
        "LUCIUS_APP_CONFIGURATION_REFRESH_SECONDS",
        "app_configuration_refresh",
        seconds(timedelta(seconds=1), timedelta(days=1)),
        "30",
        "How often the sentinel is looked at.",
    ),
)
