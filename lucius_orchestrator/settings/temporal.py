"""Variables of the engine on Temporal: which jobs it drives, where its server and its invoker are.

The server that `lucius up` starts by itself has ports of its own; every other one is named.
"""

from datetime import timedelta

from lucius_orchestrator.settings.addresses import BASE_URL, HOST_AND_PORT
from lucius_settings.info import SettingInfo
from lucius_settings.kinds import SWITCH, Kind, Refused, keys, matching, seconds, whole
from lucius_settings.secret import Secret

DEFAULT_ADDRESS = "127.0.0.1:7233"
_NAME = matching(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}",
    "1 to 255 letters, digits, dots, underscores or hyphens, a letter or digit first",
)
_PORT = whole(0, 65535)


def _read_api_key(text: str) -> Secret:
    if not text.isascii() or " " in text:
        raise Refused(f"has other characters; must be {_API_KEY.rule}")
    return Secret(text)


_API_KEY = Kind("a key in ASCII characters, without spaces", _read_api_key)

ENGINE = (
    SettingInfo(
        "LUCIUS_TEMPORAL_ENABLED",
        "temporal_enabled",
        SWITCH,
        "off",
        "Whether Temporal drives new jobs. Those that exist keep the engine that they have.",
    ),
    SettingInfo(
        "LUCIUS_TEMPORAL_ADDRESS",
        "temporal_address",
        HOST_AND_PORT,
        None,
        "The Temporal server. While it is set, jobs that Temporal drives go on, whatever drives new"
        " ones.",
        unset=f"a server that `lucius up` starts; for `lucius serve`, {DEFAULT_ADDRESS}",
    ),
    SettingInfo(
        "LUCIUS_TEMPORAL_NAMESPACE",
        "temporal_namespace",
        _NAME,
        "default",
        "The namespace of the workflows.",
    ),
    SettingInfo(
        "LUCIUS_TEMPORAL_TASK_QUEUE",
        "temporal_task_queue",
        _NAME,
        "lucius",
        "The task queue through which workers get their work.",
    ),
    SettingInfo(
        "LUCIUS_TEMPORAL_WORKFLOW_EXECUTION_TIMEOUT",
        "temporal_execution_timeout",
        seconds(timedelta(minutes=1), timedelta(days=3660)),
        None,
        "How long a workflow may take, as Temporal sees to it; it must outlast the SLA of its job."
        " One that is ended so is started again, unless the SLA has passed.",
        unset="none: the SLA alone ends a job",
    ),
    SettingInfo(
        "LUCIUS_TEMPORAL_TLS",
        "temporal_tls",
        SWITCH,
        "off",
        "Whether the server is spoken to over TLS.",
    ),
    SettingInfo(
        "LUCIUS_TEMPORAL_API_KEY",
        "temporal_api_key",
        _API_KEY,
        None,
        "The key that the server wants, if it wants one. Needs TLS.",
        secret=True,
    ),
    SettingInfo(
        "LUCIUS_TEMPORAL_PORT",
        "temporal_port",
        _PORT,
        "0",
        "The port of the server that `lucius up` starts, on 127.0.0.1; 0 takes a free one.",
    ),
    SettingInfo(
        "LUCIUS_TEMPORAL_UI_PORT",
        "temporal_ui_port",
        _PORT,
        None,
        "The port of that server's web pages; 0 takes a free one.",
        unset="none: no web pages",
    ),
    SettingInfo(
        "LUCIUS_INVOKER_URL",
        "invoker_url",
        BASE_URL,
        None,
        "The address under which workers and the API reach the invoker.",
        unset="none: in `lucius up` the process itself",
    ),
    SettingInfo(
        "LUCIUS_INVOKER_KEYS",
        "invoker_keys",
        keys(10),
        None,
        "Open the invoker's internal API: the first one is sent, all are accepted.",
        secret=True,
        unset="a key that is made once and kept in the data folder",
    ),
)
