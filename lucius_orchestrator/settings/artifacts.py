"""Variables of artifacts: where their bytes and rows are, how long they stay, who is told."""

from datetime import timedelta

from lucius_orchestrator.settings.addresses import BASE_URL, PROTECTED_URL
from lucius_orchestrator.settings.settings import ArtifactStore, CatalogueBackend
from lucius_settings.info import SettingInfo
from lucius_settings.kinds import days, hours, keys, matching, one_of, seconds, whole
from lucius_settings.storage_accounts import storage_connection, storage_endpoint

_YEAR = 365 * 24
_CONTAINER = matching(
    r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*",
    "3 to 63 lower-case letters, digits and single hyphens, a letter or digit at both ends",
)
_TOPIC = matching(
    r"[A-Za-z0-9]([A-Za-z0-9._-]{0,258}[A-Za-z0-9])?",
    "1 to 260 letters, digits, dots, underscores or hyphens, a letter or digit at both ends",
)

ARTIFACTS = (
    SettingInfo(
        "LUCIUS_ARTIFACTS_STORE",
        "artifacts.store",
        one_of(*ArtifactStore),
        ArtifactStore.FILES,
        "Where the bytes of artifacts are. `files`: in artifacts/ in the data folder, which all"
        " processes must then share. `off`: there are no artifacts.",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_CONNECTION",
        "artifacts.connection",
        storage_connection("blob"),
        None,
        "The storage account of the store `azure_blob`, with its key: clients are handed addresses"
        " that are signed with it.",
        secret=True,
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_ENDPOINT",
        "artifacts.endpoint",
        storage_endpoint("blob"),
        None,
        "The same account by its address, with the managed identity of the process instead of a"
        " key.",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_CONTAINER",
        "artifacts.container",
        _CONTAINER,
        "lucius-artifacts",
        "The container of the store `azure_blob`.",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_CATALOGUE",
        "artifacts.catalogue",
        one_of(CatalogueBackend.SQLITE, CatalogueBackend.POSTGRES),
        None,
        "Where the rows about artifacts are: `sqlite` is artifacts.db in the data folder,"
        " `postgres` the database of `LUCIUS_DATABASE_URL`.",
        unset="as the ledger's backend; with `azure_tables` none, and artifacts are off",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_KEYS",
        "artifacts.keys",
        keys(10),
        None,
        "Sign the addresses of the store `files`: the first one signs, all are accepted.",
        secret=True,
        unset="a key that is made once and kept in the data folder",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_BASE_URL",
        "artifacts.base_url",
        BASE_URL,
        None,
        "The address under which clients reach the API, for the addresses of the store `files`.",
        unset="what LUCIUS_CALLBACK_BASE_URL says, or the address where the API listens",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_MAX_BYTES",
        "artifacts.max_bytes",
        whole(1, 10**14),
        str(64 * 1024**3),
        "The longest content.",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_SESSION_HOURS",
        "artifacts.session",
        hours(1, _YEAR),
        "24",
        "How long an upload may take.",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_GRACE_HOURS",
        "artifacts.grace",
        hours(0, _YEAR),
        "24",
        "How long content stays that nobody refers to: the time between its upload and the first"
        " version or job that needs it.",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_RETENTION_DAYS",
        "artifacts.retention",
        days(0, 3650),
        "7",
        "How long such content can be revived after that, before it is deleted.",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_GC_SECONDS",
        "artifacts.interval",
        seconds(timedelta(0), timedelta(days=7)),
        "3600",
        "The time between two collections of what nobody needs; 0 runs none.",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_TOPIC",
        "artifacts.topic",
        _TOPIC,
        None,
        "The Service Bus topic to which events of artifacts are published.",
        unset="none: events are told in the log alone",
    ),
    SettingInfo(
        "LUCIUS_ARTIFACTS_POLICY_URL",
        "artifacts.policy_url",
        PROTECTED_URL,
        None,
        "A service that is asked about every version before it is published. While it does not"
        " answer, nothing is.",
        unset="none: whoever may publish does",
    ),
)
