"""What each role does, and what it cannot run without."""

import pytest

from lucius_orchestrator.bootstrap.roles import RoleUnavailable, ServeRole, check_role
from lucius_orchestrator.settings import load_settings

BUS = {"LUCIUS_SERVICEBUS_NAMESPACE": "bus.example"}
ENABLED = {"LUCIUS_TEMPORAL_ENABLED": "on"}
NAMED = {"LUCIUS_TEMPORAL_ADDRESS": "temporal.example:7233"}
INVOKER = {"LUCIUS_INVOKER_URL": "http://invoker.example"}
CALLBACKS = {"LUCIUS_CALLBACK_BASE_URL": "https://lucius.example"}
MEMORY = {"LUCIUS_STORAGE_BACKEND": "memory"}


@pytest.mark.parametrize(
    ("role", "environ", "wanted"),
    [
        (ServeRole.RECONCILER, {}, "LUCIUS_SERVICEBUS_CONNECTION"),
        (ServeRole.REPLIES, {}, "LUCIUS_SERVICEBUS_CONNECTION"),
        (ServeRole.INVOKER, ENABLED, "LUCIUS_SERVICEBUS_CONNECTION"),
        (ServeRole.RECONCILER, BUS | MEMORY | CALLBACKS, "LUCIUS_STORAGE_BACKEND"),
        (ServeRole.INVOKER, BUS | MEMORY, "LUCIUS_STORAGE_BACKEND"),
        (ServeRole.API, ENABLED | INVOKER | MEMORY, "LUCIUS_STORAGE_BACKEND"),
        (ServeRole.RECONCILER, BUS, "LUCIUS_CALLBACK_BASE_URL"),
        (ServeRole.WORKER, ENABLED, "LUCIUS_INVOKER_URL"),
        (ServeRole.API, ENABLED, "LUCIUS_INVOKER_URL"),
    ],
)
def test_a_role_says_what_it_needs(role: ServeRole, environ: dict[str, str], wanted: str) -> None:
    with pytest.raises(RoleUnavailable, match=wanted):
        check_role(role, load_settings(environ))


@pytest.mark.parametrize(
    ("role", "environ"),
    [
        (ServeRole.ALL, MEMORY),
        (ServeRole.ALL, ENABLED | MEMORY),
        (ServeRole.API, MEMORY),
        (ServeRole.API, ENABLED | INVOKER),
        (ServeRole.API, NAMED),
        (ServeRole.RECONCILER, BUS | CALLBACKS),
        (ServeRole.RECONCILER, BUS | ENABLED),
        (ServeRole.REPLIES, BUS),
        (ServeRole.INVOKER, BUS),
        (ServeRole.WORKER, INVOKER | MEMORY),
    ],
)
def test_a_role_runs_with_what_it_needs(role: ServeRole, environ: dict[str, str]) -> None:
    check_role(role, load_settings(environ))


@pytest.mark.parametrize(
    ("environ", "starts", "invokes", "works"),
    [
        ({}, set(), {ServeRole.INVOKER}, {ServeRole.WORKER}),
        *(
            (
                environ,
                {ServeRole.ALL, ServeRole.API},
                {ServeRole.ALL, ServeRole.INVOKER},
                {ServeRole.ALL, ServeRole.WORKER},
            )
            for environ in (ENABLED, NAMED)
        ),
    ],
)
def test_who_does_what_for_jobs_that_temporal_drives(
    environ: dict[str, str],
    starts: set[ServeRole],
    invokes: set[ServeRole],
    works: set[ServeRole],
) -> None:
    settings = load_settings(environ)
    assert {role for role in ServeRole if role.starts_workflows(settings)} == starts
    assert {role for role in ServeRole if role.invokes(settings)} == invokes
    assert {role for role in ServeRole if role.works(settings)} == works
    assert {role for role in ServeRole if role.uses_temporal(settings)} == starts | invokes | works


@pytest.mark.parametrize("environ", [{}, ENABLED])
def test_turns_are_granted_wherever_attempts_are_opened(environ: dict[str, str]) -> None:
    settings = load_settings(environ)
    dispatching = {role for role in ServeRole if role.runs_dispatcher(settings)}
    assert dispatching == {ServeRole.ALL, ServeRole.RECONCILER, ServeRole.INVOKER}
