"""What the values say about each other."""

from collections.abc import Iterator
from os.path import abspath
from pathlib import Path

from lucius_contract.refs import LOCAL_SCHEMES, REMOTE_SCHEMES
from lucius_orchestrator.settings.settings import StorageBackend
from lucius_settings.hosts import is_loopback
from lucius_settings.problems import SettingProblem
from lucius_settings.reading import Values


def contradictions(values: Values) -> Iterator[SettingProblem]:
    if values.get("storage_backend") is StorageBackend.POSTGRES and not _given(
        values, "database_url"
    ):
        yield SettingProblem(
            "LUCIUS_DATABASE_URL", "is required with LUCIUS_STORAGE_BACKEND=postgres"
        )
    if values.get("auth") is False and not is_loopback(values.get("host", "localhost")):
        yield SettingProblem(
            "LUCIUS_AUTH",
            f"must be on while LUCIUS_HOST is {values['host']}; off is allowed on a loopback host"
            " alone, as 127.0.0.1",
        )
    if _given(values, "webhook_hosts") and not _given(values, "webhook_keys"):
        yield SettingProblem(
            "LUCIUS_WEBHOOK_KEYS", "is required with LUCIUS_WEBHOOK_HOSTS: what is sent is signed"
        )
    if values.get("servicebus_connection") and values.get("servicebus_namespace"):
        yield SettingProblem(
            "LUCIUS_SERVICEBUS_NAMESPACE",
            "must not be set beside LUCIUS_SERVICEBUS_CONNECTION: a key or an identity, not both",
        )
    yield from _token_contradictions(values)
    yield from _length_contradictions(values)


def _token_contradictions(values: Values) -> Iterator[SettingProblem]:
    required = {"jwt_issuer": "LUCIUS_JWT_ISSUER", "jwt_audience": "LUCIUS_JWT_AUDIENCE"}
    for field, variable in required.items():
        if _given(values, "jwks_url") and not _given(values, field):
            yield SettingProblem(
                variable, "is required with LUCIUS_JWKS_URL: tokens made for others are refused"
            )


def _length_contradictions(values: Values) -> Iterator[SettingProblem]:
    lease, ceiling = values.get("step_policy.lease"), values.get("step_policy.ceiling")
    if lease and ceiling and lease > ceiling:
        yield SettingProblem(
            "LUCIUS_LEASE_SECONDS",
            "is longer than LUCIUS_STEP_RESULT_TIMEOUT_SECONDS; it must be as long or shorter",
        )


def _given(values: Values, field: str) -> bool:
    return field not in values or bool(values[field])


def in_vain(values: Values) -> Iterator[str]:
    """Variables that would have an effect if another one were set."""
    if values["database_url"] and values["storage_backend"] is not StorageBackend.POSTGRES:
        yield (
            "LUCIUS_DATABASE_URL changes nothing while LUCIUS_STORAGE_BACKEND is"
            f" {values['storage_backend']}"
        )
    if (values["jwt_issuer"] or values["jwt_audience"]) and not values["jwks_url"]:
        yield (
            "LUCIUS_JWT_ISSUER and LUCIUS_JWT_AUDIENCE change nothing while LUCIUS_JWKS_URL is not"
            " set"
        )
    if values["webhook_keys"] and not values["webhook_hosts"]:
        yield "LUCIUS_WEBHOOK_KEYS changes nothing while LUCIUS_WEBHOOK_HOSTS is not set"


def completed(values: Values) -> Values:
    """With the defaults that follow from other values."""
    local = is_loopback(values["host"])
    data_dir: Path = values["data_dir"]
    derived = {
        "auth": not local,
        "api_keys_file": data_dir / "keys.json",
        "workspace_root": Path(abspath(data_dir), "workspace").as_uri(),
        "refs.schemes": LOCAL_SCHEMES if local else REMOTE_SCHEMES,
    }
    return values | {field: value for field, value in derived.items() if values[field] is None}
