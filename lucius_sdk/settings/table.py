"""Every variable of a service, by what it is about."""

from collections.abc import Mapping
from datetime import timedelta

from lucius_contract import timeouts
from lucius_sdk.settings.kinds import (
    API_KEY,
    BASE_URL,
    FOLDER,
    LANES,
    ROOTS,
    SERVICE,
    STORE,
    SYSTEM,
)
from lucius_sdk.settings.orchestrator import OF_THE_ORCHESTRATOR
from lucius_sdk.workspace_io.access import DEFAULT_SYSTEM
from lucius_settings.connections import CONNECTION, NAMESPACE
from lucius_settings.hosts import HOST
from lucius_settings.info import SettingInfo
from lucius_settings.kinds import SWITCH, in_seconds, one_of, seconds, whole
from lucius_settings.storage_accounts import storage_connection, storage_endpoint

_HOUR = timedelta(hours=1)
_LOCAL_BUS = "the emulator of `lucius up` on this machine, at its usual port"

_BUS = (
    SettingInfo(
        "LUCIUS_SERVICE",
        "service",
        SERVICE,
        None,
        "The name of the service, which is that of its subscriptions.",
        unset="the name that the program gives",
    ),
    SettingInfo(
        "LUCIUS_SERVICEBUS_CONNECTION",
        "servicebus_connection",
        CONNECTION,
        None,
        "The Service Bus namespace, Azure's or an emulator's.",
        secret=True,
        unset=_LOCAL_BUS,
    ),
    SettingInfo(
        "LUCIUS_SERVICEBUS_NAMESPACE",
        "servicebus_namespace",
        NAMESPACE,
        None,
        "The same by name, with the managed identity of the process instead of a key.",
        unset=_LOCAL_BUS,
    ),
    SettingInfo(
        "LUCIUS_LANES",
        "lanes",
        LANES,
        "0-15",
        "The lanes that this deployment serves. Every lane must be served by one of them.",
    ),
)
_PLACES = (
    SettingInfo(
        "LUCIUS_WORKSPACE_ROOT",
        "workspace_root",
        FOLDER,
        ".lucius/workspace",
        "Where jobs have their folders: the same place as the orchestrator's variable of this"
        " name. A job reads and writes its own tenant's folder there, and no other.",
    ),
    SettingInfo(
        "LUCIUS_SYSTEM",
        "system",
        SYSTEM,
        DEFAULT_SYSTEM,
        "The folder below the workspace root that holds the folders of tenants: as the"
        " orchestrator's variable of this name says.",
    ),
    SettingInfo(
        "LUCIUS_INPUT_ROOTS",
        "input_roots",
        ROOTS,
        None,
        "Folders from which `file`, `az` and `s3` refs may be read besides the tenant's own folder"
        " of the workspace.",
    ),
    SettingInfo(
        "LUCIUS_OUTPUT_ROOTS",
        "output_roots",
        ROOTS,
        None,
        "Folders below which `file`, `az` and `s3` refs may be published to. Without any, only"
        " artifacts are.",
    ),
    SettingInfo(
        "LUCIUS_ALLOW_PRIVATE_ADDRESSES",
        "allow_private_addresses",
        SWITCH,
        "off",
        "Whether `https` refs may lead to addresses that are not public, `http` refs to this"
        " machine, and both through the proxies of the environment.",
    ),
    SettingInfo(
        "LUCIUS_HTTPS_MAX_BYTES",
        "https_max_bytes",
        whole(1, 2**40),
        str(2**30),
        "The most bytes that are read of one `https` ref.",
    ),
    SettingInfo(
        "LUCIUS_DEDUP_STORE",
        "dedup_store",
        STORE,
        "sqlite:.lucius/dedup.db",
        "Where the service remembers what it has done. It must outlive the process, and all"
        " instances of the service must share it. A password in it is never shown.",
    ),
)
_ACCOUNTS = (
    SettingInfo(
        "LUCIUS_TABLE_CONNECTION",
        "table_connection",
        storage_connection("table"),
        None,
        "The storage account with the table of an `aztable:` dedup store, Azure's or an"
        " emulator's.",
        secret=True,
    ),
    SettingInfo(
        "LUCIUS_TABLE_ENDPOINT",
        "table_endpoint",
        storage_endpoint("table"),
        None,
        "The same by address, with the managed identity of the process instead of a key.",
    ),
    SettingInfo(
        "LUCIUS_BLOB_CONNECTION",
        "blob_connection",
        storage_connection("blob"),
        None,
        "The storage account with the blobs of `az` uris and of an `azblob:` dedup store, Azure's"
        " or an emulator's.",
        secret=True,
    ),
    SettingInfo(
        "LUCIUS_BLOB_ENDPOINT",
        "blob_endpoint",
        storage_endpoint("blob"),
        None,
        "The same by address, with the managed identity of the process instead of a key.",
    ),
)
_S3 = (
    SettingInfo(
        "LUCIUS_S3_ENDPOINT",
        "s3_endpoint",
        BASE_URL,
        None,
        "The address of a store that speaks the protocol of S3, for `s3` uris. Credentials and"
        " region come from the variables, profiles and roles of AWS.",
        unset="AWS, or what AWS_ENDPOINT_URL_S3 says",
    ),
)
_ARTIFACTS = (
    SettingInfo(
        "LUCIUS_ARTIFACTS_URL",
        "artifacts_url",
        BASE_URL,
        None,
        "The address of the API, for inputs and outputs that are `artifact` uris.",
        unset="none: such uris are refused",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_KEY",
        "artifacts_key",
        API_KEY,
        None,
        "An API key with the roles `read` and `submit` for the tenants of the jobs.",
        secret=True,
    ),
)
_WORK = (
    SettingInfo(
        "LUCIUS_CONCURRENCY",
        "concurrency",
        whole(1, 1024),
        "8",
        "How many directives are worked on at once.",
    ),
    SettingInfo(
        "LUCIUS_ACK_SECONDS",
        "ack_within",
        seconds(timedelta(milliseconds=1), _HOUR),
        "5",
        "How long the work waits for the answer to its ACK before it begins all the same.",
    ),
    SettingInfo(
        "LUCIUS_GRACE_SECONDS",
        "grace",
        seconds(timedelta(0), _HOUR),
        "30",
        "How long a process that was told to stop may finish what it has begun.",
    ),
    SettingInfo(
        "LUCIUS_MAX_CLOCK_SKEW",
        "clock_skew",
        seconds(timedelta(0), _HOUR),
        in_seconds(timeouts.MAX_CLOCK_SKEW),
        "The most that two clocks may differ.",
    ),
)
_OPERATION = (
    SettingInfo(
        "LUCIUS_HEALTH_HOST",
        "health_host",
        HOST,
        "127.0.0.1",
        "Where the service answers about its health and its metrics.",
    ),
    SettingInfo(
        "LUCIUS_HEALTH_PORT",
        "health_port",
        whole(0, 65535),
        "8081",
        "The port for that; 0 takes a free one.",
    ),
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
        one_of("text", "json"),
        "json",
        "How a record is written.",
    ),
)
GROUPS: Mapping[str, tuple[SettingInfo, ...]] = {
    "Service and bus": _BUS,
    "Places": _PLACES,
    "Storage accounts": _ACCOUNTS,
    "S3": _S3,
    "Artifacts": _ARTIFACTS,
    "Work": _WORK,
    "Health and logs": _OPERATION,
}
SETTINGS: tuple[SettingInfo, ...] = tuple(info for group in GROUPS.values() for info in group)
KNOWN: tuple[SettingInfo, ...] = (*SETTINGS, *OF_THE_ORCHESTRATOR)
