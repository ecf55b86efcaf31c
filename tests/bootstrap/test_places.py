"""What refs may name, by the settings, and what a doctor says of places."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from lucius_contract.places import HTTPS, STORAGE_SCHEMES, Reach
from lucius_orchestrator.bootstrap.checks import diagnose
from lucius_orchestrator.bootstrap.places import check_places, plan_settings_of
from lucius_orchestrator.ports.registry import GlobalConfig, Snapshot, TenantConfig
from lucius_orchestrator.settings import load_settings
from tests.registry.folder import PROTOCOL, write

ON = {"LUCIUS_AUTH": "on"}


def test_with_auth_nothing_is_within_reach_but_https_inputs() -> None:
    plan = plan_settings_of(load_settings({**ON, "LUCIUS_INPUT_ROOTS": "/in"}))
    assert (plan.inputs, plan.outputs) == (Reach(schemes=frozenset({HTTPS})), Reach())


def test_without_auth_the_data_folder_is_and_storages_that_have_no_root(tmp_path: Path) -> None:
    given = {"LUCIUS_DATA_DIR": str(tmp_path), "LUCIUS_WORKSPACE_ROOT": "az://work/jobs"}
    plan = plan_settings_of(load_settings(given))
    local = (f"{tmp_path.as_uri()}/", "az://work/jobs/")
    assert plan.inputs == Reach(local, STORAGE_SCHEMES | {HTTPS})
    assert plan.outputs == Reach(local, frozenset({"az", "s3"}))


def test_a_root_closes_what_is_beside_it(tmp_path: Path) -> None:
    given = {
        "LUCIUS_DATA_DIR": str(tmp_path),
        "LUCIUS_INPUT_ROOTS": "/in,s3://scans",
        "LUCIUS_OUTPUT_ROOTS": "/out,az://answers/2026",
    }
    plan = plan_settings_of(load_settings(given))
    data = f"{tmp_path.as_uri()}/"
    local = (data, f"{data}workspace/")
    assert plan.inputs == Reach((*local, "file:///in/", "s3://scans/"), frozenset({"az", HTTPS}))
    assert plan.outputs == Reach((*local, "file:///out/", "az://answers/2026/"), frozenset({"s3"}))


def said(
    defaults: GlobalConfig | None = None,
    tenants: Mapping[str, TenantConfig] | None = None,
    **variables: str,
) -> str:
    snapshot = Snapshot({}, {}, tenants or {}, defaults or GlobalConfig())
    given = {**ON, "LUCIUS_WORKSPACE_ROOT": "az://work/jobs", **variables}
    check = check_places(load_settings(given), snapshot)
    assert (check.name, check.ok) == ("places", True)
    return check.detail


def test_a_doctor_is_content_with_places_of_their_own() -> None:
    defaults = GlobalConfig(
        input_places=("az://inbox/{tenant}/", "az://shared/models/"),
        output_places=("az://outbox/{tenant}/",),
    )
    acme = TenantConfig(input_places=("s3://a/",), output_places=("s3://a/", "az://outbox/acme/x/"))
    beta = TenantConfig(output_places=("s3://b/",))
    assert said(defaults, {"acme": acme, "beta": beta}) == (
        "no tenant reaches what another one publishes"
    )
    assert said().startswith("none: refs may name artifacts")
    off = check_places(load_settings({}), Snapshot({}, {}, {}, defaults))
    assert off.detail == "auth is off: refs may name all but the workspace"


@pytest.mark.parametrize(
    ("defaults", "tenants", "warning"),
    [
        (
            GlobalConfig(output_places=("az://outbox/",)),
            {},
            "az://outbox/ of defaults is one for all tenants, who overwrite or read",
        ),
        (
            GlobalConfig(output_places=("az://out/{tenant}/",)),
            {"acme": TenantConfig(output_places=("az://out/",))},
            "az://out/ of tenant acme meets az://out/~another/ of defaults",
        ),
        (
            GlobalConfig(output_places=("az://out/{tenant}/",)),
            {"acme": TenantConfig(), "beta": TenantConfig(input_places=("az://out/acme/",))},
            "az://out/acme/ of defaults meets az://out/acme/ of tenant beta",
        ),
        (
            None,
            {
                "acme": TenantConfig(output_places=("s3://b/x/",)),
                "beta": TenantConfig(output_places=("s3://b/x/y/",)),
            },
            "s3://b/x/ of tenant acme meets s3://b/x/y/ of tenant beta",
        ),
        (
            GlobalConfig(input_places=("az://inbox/",)),
            {},
            "az://inbox/ of defaults lets every tenant read all of it",
        ),
        (
            None,
            {"acme": TenantConfig(input_places=("az://work/jobs/lucius/acme/",))},
            "az://work/jobs/lucius/acme/ of tenant acme is in the workspace and gives nothing",
        ),
    ],
)
def test_a_doctor_warns_of_a_place_that_is_open(
    defaults: GlobalConfig | None, tenants: dict[str, TenantConfig], warning: str
) -> None:
    detail = said(defaults, tenants)
    assert detail.startswith("warning: ")
    assert warning in detail


def test_a_container_that_the_outer_bound_names_is_meant() -> None:
    defaults = GlobalConfig(input_places=("az://inbox/",))
    detail = said(defaults, LUCIUS_REF_PLACES="inbox,files.example")
    assert detail == "no tenant reaches what another one publishes"


def test_of_many_warnings_three_are_shown() -> None:
    places = tuple(f"az://outbox{number}/" for number in range(5))
    assert said(GlobalConfig(output_places=places)).endswith("; and 2 more")


async def test_a_doctor_looks_at_places(tmp_path: Path) -> None:
    folder = write(tmp_path / "config", a=PROTOCOL, defaults="output_places: ['az://outbox/']")
    given = {"LUCIUS_DATA_DIR": str(tmp_path), "LUCIUS_PROTOCOLS_DIR": str(folder)}
    (check,) = [
        check for check in await diagnose(load_settings(given | ON)) if check.name == "places"
    ]
    assert "az://outbox/ of defaults" in check.detail
