"""Every variable that is known, by what it is about."""

from collections.abc import Mapping

from lucius_orchestrator.settings import (
    artifacts,
    bus,
    deployment,
    foreign,
    registry,
    temporal,
    work,
)
from lucius_settings.info import SettingInfo

GROUPS: Mapping[str, tuple[SettingInfo, ...]] = {
    "Storage": deployment.STORAGE,
    "API": deployment.API,
    "Callers": deployment.CALLERS,
    "Replies": deployment.REPLIES,
    "Protocols, workspace and refs": work.PLACES,
    "App Configuration": registry.APP_CONFIGURATION,
    "Artifacts": artifacts.ARTIFACTS,
    "Webhooks": deployment.WEBHOOKS,
    "Limits": work.LIMITS,
    "Dispatch": work.DISPATCH,
    "Times and tries": work.TRIES,
    "Logs": deployment.LOGS,
    "Bus": bus.BUS,
    "Engine": temporal.ENGINE,
    "Accepted without effect": foreign.IDLE,
    "Of other programs": foreign.ELSEWHERE,
}
SETTINGS: tuple[SettingInfo, ...] = tuple(info for group in GROUPS.values() for info in group)
