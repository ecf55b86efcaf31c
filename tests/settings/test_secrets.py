"""No secret is seen: not in settings, not in problems, not in warnings, not in what is in force."""

import traceback
from collections.abc import Mapping
from dataclasses import fields
from typing import get_type_hints

import pytest

from lucius_orchestrator.settings import (
    SETTINGS,
    ArtifactSettings,
    Secret,
    Settings,
    SettingsError,
    Use,
    effective,
    load_settings,
)

WORD = "hunter2hunter2"
KEYS = f"{WORD}{'a' * 32},{WORD}{'b' * 32}"
GOOD = {
    "LUCIUS_STORAGE_BACKEND": "postgres",
    "LUCIUS_DATABASE_URL": f"postgresql://lucius:{WORD}@db/lucius",
    "LUCIUS_CALLBACK_KEYS": KEYS,
    "LUCIUS_WEBHOOK_HOSTS": "hooks.example",
    "LUCIUS_WEBHOOK_MASTER_KEYS": f"{WORD}{'c' * 32}",
    "LUCIUS_WEBHOOK_KEYS": KEYS,
    "LUCIUS_TABLE_CONNECTION": f"AccountName=lucius;AccountKey={WORD}aa",
    "LUCIUS_SERVICEBUS_CONNECTION": "Endpoint=sb://bus.example/;SharedAccessKeyName=root;"
    f"SharedAccessKey={WORD}",
    "LUCIUS_APP_CONFIGURATION_CONNECTION": "Endpoint=https://lucius.azconfig.io;Id=root;"
    f"Secret={WORD}aa",
    "LUCIUS_TEMPORAL_ADDRESS": "temporal.example:7233",
    "LUCIUS_TEMPORAL_TLS": "on",
    "LUCIUS_TEMPORAL_API_KEY": WORD,
    "LUCIUS_INVOKER_KEYS": KEYS,
    "LUCIUS_ARTIFACTS_CONNECTION": f"AccountName=lucius;AccountKey={WORD}aa",
    "LUCIUS_ARTIFACTS_KEYS": KEYS,
    "LUCIUS_BUS_KEYS": f"root={WORD}",
    "LUCIUS_API_KEY": f"lk_{WORD}",
    "LUCIUS_DATABASE_URI": f"postgresql://lucius:{WORD}@db/lucius",
}
BAD = {
    "LUCIUS_TEMPORAL_ADDRESS": f"lucius:{WORD}@temporal:7233",
    "LUCIUS_TEMPORAL_API_KEY": f"Bearer {WORD}",
    "LUCIUS_INVOKER_URL": f"https://lucius:{WORD}@invoker",
    "LUCIUS_INVOKER_KEYS": WORD,
    "LUCIUS_ARTIFACTS_CONNECTION": f"AccountKey={WORD}",
    "LUCIUS_ARTIFACTS_ENDPOINT": f"AccountName=lucius;AccountKey={WORD}",
    "LUCIUS_ARTIFACTS_KEYS": WORD,
    "LUCIUS_ARTIFACTS_POLICY_URL": f"https://lucius:{WORD}@policy",
    "LUCIUS_ARTIFACTS_BASE_URL": f"https://lucius:{WORD}@api",
    "LUCIUS_TABLE_CONNECTION": f"AccountKey={WORD}",
    "LUCIUS_TABLE_ENDPOINT": f"AccountName=lucius;AccountKey={WORD}",
    "LUCIUS_DATABASE_URL": f"mysql://lucius:{WORD}@db/lucius",
    "LUCIUS_CALLBACK_KEYS": WORD,
    "LUCIUS_WEBHOOK_MASTER_KEYS": f"{KEYS},{KEYS}",
    "LUCIUS_WEBHOOK_KEYS": f"{KEYS},{KEYS}",
    "LUCIUS_SERVICEBUS_CONNECTION": f"Endpoint=sb://bus.example/;SharedAccessKey={WORD}",
    "LUCIUS_SERVICEBUS_NAMESPACE": f"Endpoint=sb://bus.example/;SharedAccessKey={WORD}",
    "LUCIUS_APP_CONFIGURATION_CONNECTION": f"Endpoint=https://lucius.azconfig.io;Secret={WORD}",
    "LUCIUS_APP_CONFIGURATION_ENDPOINT": f"Endpoint=https://lucius.azconfig.io;Secret={WORD}",
}
MISPLACED = (
    f"https://lucius:{WORD}@host/path",
    f"https://lucius:{WORD}/x@host/path",
    f"https://lucius:{WORD}",
    f"az://work/jobs?sig={WORD}",
    f"SharedAccessKey={WORD}",
    f"lk_0123456789abcdef_{WORD}_0123456789abcdef",
)
NAMED = {info.variable for info in SETTINGS if info.secret}
CHECKED = {info.variable for info in SETTINGS if info.secret and info.use is Use.READ}


def problems_of(environ: Mapping[str, str]) -> str:
    with pytest.raises(SettingsError) as refusal:
        load_settings(environ)
    error = refusal.value
    trace = traceback.format_exception(error)
    return "\n".join([str(error), repr(error), repr(error.problems), *trace])


def test_settings_show_no_secret() -> None:
    settings = load_settings(GOOD)
    assert WORD not in f"{settings} {settings!r} {settings.warnings}"
    assert settings.database_url is not None
    assert settings.database_url.reveal() == GOOD["LUCIUS_DATABASE_URL"]
    assert ",".join(key.reveal() for key in settings.webhook_keys) == KEYS


def test_what_is_in_force_shows_no_secret() -> None:
    shown = {row.variable: row for row in effective(load_settings(GOOD), GOOD)}
    assert WORD not in repr(shown)
    for variable in NAMED & shown.keys() & GOOD.keys():
        assert (shown[variable].value_masked, shown[variable].source) == ("***", "set")


def test_problems_show_no_secret() -> None:
    text = problems_of(BAD)
    assert WORD not in text
    assert all(variable in text for variable in BAD)


@pytest.mark.parametrize("variable", sorted(CHECKED))
def test_a_secret_that_cannot_be_read_is_not_shown(variable: str) -> None:
    assert WORD not in problems_of({variable: f"{WORD}\0"})
    assert WORD not in problems_of({variable: f"{WORD},{WORD}"})


@pytest.mark.parametrize("text", MISPLACED)
def test_a_credential_in_the_wrong_variable_is_not_shown_when_that_is_refused(text: str) -> None:
    checked = {
        info.variable: text
        for info in SETTINGS
        if info.use is Use.READ and info.kind.rule not in ("a path", "any text")
    }
    assert WORD not in problems_of(checked)


def test_the_table_knows_which_values_are_secret() -> None:
    hidden = secrets_of(Settings) | {f"artifacts.{name}" for name in secrets_of(ArtifactSettings)}
    assert hidden == {info.field for info in SETTINGS if info.secret} - {None}


def secrets_of(kind: type[Settings | ArtifactSettings]) -> set[str]:
    hints = get_type_hints(kind)
    return {field.name for field in fields(kind) if "Secret" in str(hints[field.name])}


def test_a_secret_prints_as_a_mask() -> None:
    secret = Secret(WORD)
    assert f"{secret} {secret!r} {[secret]}" == "*** Secret(***) [Secret(***)]"
    assert secret.reveal() == WORD


def test_secrets_are_equal_when_their_texts_are() -> None:
    assert len({Secret("é"), Secret("é"), Secret("e")}) == 2
    assert Secret("a") != "a"
