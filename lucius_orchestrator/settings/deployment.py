"""Variables of a deployment: where it keeps its rows, where it listens, whom it trusts."""

from datetime import timedelta

from lucius_contract.messages import REPLY_LIMIT
from lucius_orchestrator.domain.aggregate import ReplyVia
from lucius_orchestrator.settings.addresses import (
    BASE_URL,
    DATABASE_URL,
    PROTECTED_URL,
    TABLE_NAME,
    places,
)
from lucius_orchestrator.settings.settings import LogFormat, StorageBackend
from lucius_settings.hosts import HOST
from lucius_settings.info import SettingInfo
from lucius_settings.kinds import (
    PATH,
    SWITCH,
    TEXT,
    days,
    keys,
    one_of,
    seconds,
    whole,
)
from lucius_settings.storage_accounts import storage_connection, storage_endpoint

_SHORTEST = timedelta(milliseconds=1)
_HOUR = timedelta(hours=1)


def _table(variable: str, field: str, default: str, of: str) -> SettingInfo:
    what = f"The table of {of}, with the backend `azure_tables`."
    return SettingInfo(variable, field, TABLE_NAME, default, what)


STORAGE = (
    SettingInfo(
        "LUCIUS_STORAGE_BACKEND",
        "storage_backend",
        one_of(*StorageBackend),
        StorageBackend.SQLITE,
        "Where the ledger is kept. `memory` forgets everything when the process ends.",
    ),
    SettingInfo(
        "LUCIUS_DATA_DIR",
        "data_dir",
        PATH,
        ".lucius",
        "The folder of everything that is kept in files: the SQLite ledger, keys, the workspace.",
    ),
    SettingInfo(
        "LUCIUS_DATABASE_URL",
        "database_url",
        DATABASE_URL,
        None,
        "The PostgreSQL database. Required with the backend `postgres`.",
        secret=True,
    ),
    SettingInfo(
        "LUCIUS_TABLE_CONNECTION",
        "table_connection",
        storage_connection("table"),
        None,
        "The storage account of the backend `azure_tables`, with a key or a shared access"
        " signature.",
        secret=True,
    ),
    SettingInfo(
        "LUCIUS_TABLE_ENDPOINT",
        "table_endpoint",
        storage_endpoint("table"),
        None,
        "The same account by its address, with the managed identity of the process instead of a"
        " key.",
    ),
    _table("LUCIUS_LEDGER_TABLE", "ledger_table", "lucius_ledger", "the jobs"),
    _table("LUCIUS_IDEMPOTENCY_TABLE", "idempotency_table", "job-idempotency", "the entries"),
    _table("LUCIUS_JOB_INDEX_TABLE", "job_index_table", "job-index", "the lists of jobs"),
    _table("LUCIUS_INFLIGHT_TABLE", "inflight_table", "job-inflight", "the jobs in flight"),
    SettingInfo(
        "LUCIUS_RETENTION_DAYS",
        "retention",
        days(1, 36500),
        "30",
        "How long a finished job is kept.",
    ),
)
API = (
    SettingInfo("LUCIUS_HOST", "host", HOST, "127.0.0.1", "Where the API listens."),
    SettingInfo(
        "LUCIUS_PORT",
        "port",
        whole(0, 65535),
        "8080",
        "The port of the API; 0 takes a free one.",
    ),
    SettingInfo(
        "LUCIUS_MAX_BODY_BYTES",
        "max_body_bytes",
        # Less would refuse a RESULT that the contract allows, and that answer is final.
        whole(REPLY_LIMIT, 100 * 1024 * 1024),
        "1048576",
        "The longest request body.",
    ),
    SettingInfo(
        "LUCIUS_REQUEST_TIMEOUT_SECONDS",
        "request_timeout",
        seconds(_SHORTEST, _HOUR),
        "30",
        "How long a request may take.",
    ),
    SettingInfo(
        "LUCIUS_SHUTDOWN_GRACE_SECONDS",
        "shutdown_grace",
        seconds(timedelta(0), _HOUR),
        "30",
        "How long a process that was told to stop may finish what it has begun.",
    ),
)
CALLERS = (
    SettingInfo(
        "LUCIUS_AUTH",
        "auth",
        SWITCH,
        None,
        "Whether callers must show a credential. `off` is allowed on a loopback host alone.",
        unset="off on a loopback host, on elsewhere",
    ),
    SettingInfo(
        "LUCIUS_API_KEYS_FILE",
        "api_keys_file",
        PATH,
        None,
        "The file of the API keys. It holds their digests, not the keys.",
        unset="keys.json in the data folder",
    ),
    SettingInfo(
        "LUCIUS_JWKS_URL",
        "jwks_url",
        PROTECTED_URL,
        None,
        "Where the keys are published that sign callers' tokens.",
        unset="none: API keys alone",
    ),
    SettingInfo(
        "LUCIUS_JWT_ISSUER",
        "jwt_issuer",
        TEXT,
        None,
        "The issuer that a token must name. Required with `LUCIUS_JWKS_URL`.",
    ),
    SettingInfo(
        "LUCIUS_JWT_AUDIENCE",
        "jwt_audience",
        TEXT,
        None,
        "The audience that a token must name. Required with `LUCIUS_JWKS_URL`.",
    ),
)
REPLIES = (
    SettingInfo(
        "LUCIUS_REPLY_VIA",
        "reply_via",
        one_of(*ReplyVia),
        None,
        "How services answer a directive, unless its protocol step says otherwise.",
        unset="http; bus where Temporal drives new jobs",
    ),
    SettingInfo(
        "LUCIUS_CALLBACK_BASE_URL",
        "callback_base_url",
        BASE_URL,
        None,
        "The address under which services reach the API.",
        unset="the address where the API listens",
    ),
    SettingInfo(
        "LUCIUS_CALLBACK_KEYS",
        "callback_keys",
        keys(10),
        None,
        "Sign the tokens that directives carry, for callbacks and artifacts: the first one signs,"
        " all are accepted. The same for all processes.",
        secret=True,
        unset="a key that is made once and kept in the data folder",
    ),
)
WEBHOOKS = (
    SettingInfo(
        "LUCIUS_WEBHOOK_HOSTS",
        "webhook_hosts",
        places("hosts or .domains", frozenset()),
        None,
        "The hosts that may be told of the end of a job. With any, master keys are required.",
    ),
    SettingInfo(
        "LUCIUS_WEBHOOK_MASTER_KEYS",
        "webhook_master_keys",
        keys(2),
        None,
        "From these the keys of tenants are derived that sign what is sent: from the first one, and"
        " during a change also from the one before it. No receiver gets them, but the key that"
        " `lucius keys webhook TENANT` prints.",
        secret=True,
    ),
    SettingInfo(
        "LUCIUS_WEBHOOK_KEYS",
        "webhook_keys",
        keys(2),
        None,
        "Sign for all tenants, besides the tenant's own keys. Only for receivers that were set up"
        " before those: who has such a key can sign for every tenant.",
        secret=True,
    ),
    SettingInfo(
        "LUCIUS_WEBHOOK_ALLOW_PRIVATE",
        "webhook_allow_private",
        SWITCH,
        "off",
        "Whether a host may have an address that is not public.",
    ),
    SettingInfo(
        "LUCIUS_WEBHOOK_CA_FILE",
        "webhook_ca_file",
        PATH,
        None,
        "Certificates that are trusted besides those of the system, as PEM.",
    ),
)
LOGS = (
    SettingInfo(
        "LUCIUS_LOG_LEVEL",
        "log_level",
        one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
        "INFO",
        "The least level that is written.",
    ),
    SettingInfo(
        "LUCIUS_LOG_FORMAT",
        "log_format",
        one_of(*LogFormat),
        LogFormat.JSON,
        "How a record is written.",
    ),
)
