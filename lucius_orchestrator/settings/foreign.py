"""Variables that change nothing, and those of other programs."""

from lucius_settings.info import SettingInfo, Use
from lucius_settings.kinds import TEXT


def _idle(variable: str, reason: str, secret: bool = False) -> SettingInfo:
    return SettingInfo(variable, None, TEXT, None, reason, secret, "-", Use.IDLE)


_ONE_LEDGER = "Jobs and steps lie together in the ledger and have no tables of their own."
IDLE = (
    _idle("LUCIUS_JOBS_TABLE", _ONE_LEDGER),
    _idle("LUCIUS_STEPS_TABLE", _ONE_LEDGER),
)


def _elsewhere(variable: str, meaning: str, secret: bool = False) -> SettingInfo:
    return SettingInfo(variable, None, TEXT, None, meaning, secret, "-", Use.ELSEWHERE)


ELSEWHERE = (
    _elsewhere("LUCIUS_SERVICE", "Of a service: its name."),
    _elsewhere("LUCIUS_LANES", "Of a service: the lanes that it serves."),
    _elsewhere("LUCIUS_HTTPS_MAX_BYTES", "Of a service: the most that it reads of a document."),
    _elsewhere("LUCIUS_S3_ENDPOINT", "Of a service: the store that `s3` uris are of."),
    _elsewhere("LUCIUS_DEDUP_STORE", "Of a service: where it remembers what it has done."),
    _elsewhere(
        "LUCIUS_BLOB_CONNECTION", "Of a service: the account whose blobs it uses.", secret=True
    ),
    _elsewhere("LUCIUS_BLOB_ENDPOINT", "Of a service: the same, for its identity."),
    _elsewhere("LUCIUS_ARTIFACTS_URL", "Of a service: the API whose artifacts it uses."),
    _elsewhere("LUCIUS_ARTIFACTS_KEY", "Of a service: its credential there.", secret=True),
    _elsewhere("LUCIUS_CONCURRENCY", "Of a service: how many directives it works on at once."),
    _elsewhere("LUCIUS_ACK_SECONDS", "Of a service: how soon it sends an ACK."),
    _elsewhere("LUCIUS_GRACE_SECONDS", "Of a service: how long it may take to stop."),
    _elsewhere("LUCIUS_HEALTH_HOST", "Of a service: where it answers about its health."),
    _elsewhere("LUCIUS_HEALTH_PORT", "Of a service: the port for that."),
    _elsewhere("LUCIUS_BUS_KEYS", "Of `lucius bus up`: its keys, as NAME=KEY,...", secret=True),
    _elsewhere("LUCIUS_URL", "Of the shell client: the address of the API."),
    _elsewhere("LUCIUS_API_KEY", "Of the shell client: its credential.", secret=True),
)
