"""From environment variables to the settings of a service, or to everything that is wrong."""

from collections.abc import Iterator, Mapping

from lucius_outbox.redaction import without_credentials
from lucius_sdk.settings.kinds import absolute, is_of_blobs, is_of_s3, is_of_tables
from lucius_sdk.settings.service_settings import ServiceSettings
from lucius_sdk.settings.table import KNOWN, SETTINGS
from lucius_sdk.workspace_io.s3.storage import is_installed
from lucius_settings.effective import EffectiveSetting, in_force
from lucius_settings.problems import SettingProblem
from lucius_settings.reading import Values, in_order, read_all
from lucius_settings.remarks import unknown
from lucius_settings.secret import Secret

# The emulator of `lucius up` takes any key, but clients want one.
_LOCAL_BUS = Secret(
    "Endpoint=sb://127.0.0.1:5672;SharedAccessKeyName=local;SharedAccessKey=local;"
    "UseDevelopmentEmulator=true;"
)


def load_settings(environ: Mapping[str, str]) -> ServiceSettings:
    """The settings, or SettingsError with every problem that there is."""
    values, problems = read_all(SETTINGS, environ)
    problems += _contradictions(values)
    if problems:
        raise in_order(SETTINGS, problems)
    remarks = (*unknown(KNOWN, environ), *_risks(values))
    return ServiceSettings(**_completed(values), warnings=remarks)


def effective(settings: ServiceSettings, environ: Mapping[str, str]) -> list[EffectiveSetting]:
    """What is in force, without secrets."""
    return in_force(SETTINGS, settings, environ, without_credentials)


def _contradictions(values: Values) -> Iterator[SettingProblem]:
    yield from _two_ways(values, "servicebus_connection", "servicebus_namespace")
    yield from _two_ways(values, "table_connection", "table_endpoint")
    yield from _two_ways(values, "blob_connection", "blob_endpoint")
    yield from _without_an_account(values)


def _two_ways(values: Values, by_key: str, by_identity: str) -> Iterator[SettingProblem]:
    if values.get(by_key) and values.get(by_identity):
        yield SettingProblem(
            f"LUCIUS_{by_identity.upper()}",
            f"must not be set beside LUCIUS_{by_key.upper()}: a key or an identity, not both",
        )


def _without_an_account(values: Values) -> Iterator[SettingProblem]:
    """What could not be read at all is a problem already."""
    root, store = values.get("workspace_root", ""), values.get("dedup_store", Secret("")).reveal()
    blobs = {
        "LUCIUS_WORKSPACE_ROOT": is_of_blobs(root),
        "LUCIUS_INPUT_ROOTS": any(map(is_of_blobs, values.get("input_roots", ()))),
        "LUCIUS_OUTPUT_ROOTS": any(map(is_of_blobs, values.get("output_roots", ()))),
        "LUCIUS_DEDUP_STORE": is_of_blobs(store),
    }
    if _is_unset(values, "blob_connection", "blob_endpoint"):
        for variable in [variable for variable, is_wanted in blobs.items() if is_wanted]:
            yield SettingProblem(
                variable,
                "names blobs, and no storage account is set: set LUCIUS_BLOB_CONNECTION or"
                " LUCIUS_BLOB_ENDPOINT",
            )
    if is_of_tables(store) and _is_unset(values, "table_connection", "table_endpoint"):
        yield SettingProblem(
            "LUCIUS_DEDUP_STORE",
            "names a table, and no storage account is set: set LUCIUS_TABLE_CONNECTION or"
            " LUCIUS_TABLE_ENDPOINT",
        )


def _is_unset(values: Values, *fields: str) -> bool:
    return all(field in values and values[field] is None for field in fields)


def _risks(values: Values) -> Iterator[str]:
    if values["dedup_store"].reveal().startswith("memory:"):
        yield (
            "LUCIUS_DEDUP_STORE=memory: forgets what was done when the process ends, so work may"
            " be done twice; use sqlite:, redis://, aztable: or azblob: for anything but tests"
        )

    for variable in ("input_roots", "output_roots"):
        if any(map(is_of_s3, values[variable])) and not is_installed():
            yield (
                f"LUCIUS_{variable.upper()} names places of S3, and its package is missing:"
                " pip install 'lucius-sdk[s3]'"
            )


def _completed(values: Values) -> Values:
    """With the default that follows from other values, and with folders as they are now."""
    is_local = not values["servicebus_connection"] and not values["servicebus_namespace"]
    return values | {
        "servicebus_connection": _LOCAL_BUS if is_local else values["servicebus_connection"],
        "workspace_root": absolute(values["workspace_root"]),
        "input_roots": tuple(map(absolute, values["input_roots"])),
        "output_roots": tuple(map(absolute, values["output_roots"])),
    }
