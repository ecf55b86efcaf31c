"""What teams may build on. A name that is gone, or that came without a decision, fails here."""

import importlib
from pathlib import Path

import pytest

import lucius_sdk

PUBLIC: dict[str, set[str]] = {
    "lucius_sdk": {
        "Artifact",
        "Directive",
        "ErrorCode",
        "NonRetryableError",
        "RetryableError",
        "Service",
        "StepCancelled",
        "StepContext",
        "__version__",
    },
    "lucius_sdk.context": {"Publisher", "StepContext", "StopReason", "WorkState"},
    "lucius_sdk.directive_model": {
        "Directive",
        "DirectiveRefused",
        "DirectiveUnreadable",
        "RefusalReason",
        "StepTypeNotOwned",
        "read_directive",
        "read_payload",
    },
    "lucius_sdk.error_model": {
        "Failure",
        "NonRetryableError",
        "RetryableError",
        "StepCancelled",
        "StepError",
        "StopReason",
        "WorkStopped",
        "check_code",
        "classify",
        "code_prefix",
    },
    "lucius_sdk.idempotency_store": {
        "RETENTION",
        "ClaimKind",
        "ClaimLost",
        "ClaimState",
        "Claimed",
        "Claims",
        "Conflict",
        "DeadlinePassed",
        "DedupStore",
        "Expired",
        "Finished",
        "Held",
        "HeldClaim",
        "MemoryStore",
        "Record",
        "RecordUnreadable",
        "Refused",
        "StepKey",
        "StoreError",
        "StoreUnavailable",
        "StoreUnusable",
        "Stored",
        "StoredResult",
        "Superseded",
        "open_store",
    },
    "lucius_sdk.service": {"Hook", "Registration", "Returned", "Service", "StepHandler"},
    "lucius_sdk.settings": {
        "SETTINGS",
        "Secret",
        "ServiceSettings",
        "SettingProblem",
        "SettingsError",
        "effective",
        "load_settings",
    },
    "lucius_sdk.testing": {"FakeClock", "RecordedReplies", "StepRun", "arun_step", "run_step"},
    "lucius_sdk.workspace_io": {
        "ArtifactWriter",
        "BlobStorage",
        "Catalogue",
        "Catalogues",
        "Fence",
        "Input",
        "LocalStorage",
        "PriorArtifact",
        "PriorArtifacts",
        "Reader",
        "S3Options",
        "S3Storage",
        "Sink",
        "Source",
        "StepFolder",
        "Storage",
        "Storages",
        "Workspace",
        "open_catalogues",
        "open_storages",
        "publish",
    },
}
"""Modules with `__all__`, which is what they promise."""

INTERNAL = {
    "lucius_sdk.ack_client",
    "lucius_sdk.addresses",
    "lucius_sdk.clock",
    "lucius_sdk.faults",
    "lucius_sdk.handler_threads",
    "lucius_sdk.handlers",
    "lucius_sdk.health",
    "lucius_sdk.logs",
    "lucius_sdk.metrics",
    "lucius_sdk.readiness",
    "lucius_sdk.replies",
    "lucius_sdk.result_client",
    "lucius_sdk.runtime",
    "lucius_sdk.servicebus_consumer",
    "lucius_sdk.tracing",
    "lucius_sdk.work_state",
}
"""Parts of the machine: they may change at any time."""


@pytest.mark.parametrize("module", sorted(PUBLIC))
def test_the_names_of_a_public_module_are_these(module: str) -> None:
    found = importlib.import_module(module)
    assert set(found.__all__) == PUBLIC[module]


@pytest.mark.parametrize("module", sorted(PUBLIC))
def test_every_public_name_is_there(module: str) -> None:
    found = importlib.import_module(module)
    assert [name for name in PUBLIC[module] if not hasattr(found, name)] == []


def test_every_module_is_public_or_internal_by_decision() -> None:
    folder = Path(lucius_sdk.__file__).parent
    modules = [*folder.glob("*.py"), *(inner.parent for inner in folder.glob("*/*.py"))]
    found = {f"lucius_sdk.{path.stem}" for path in modules} - {"lucius_sdk.__init__"}
    assert found == (PUBLIC.keys() - {"lucius_sdk"}) | INTERNAL


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Servise'"):
        lucius_sdk.Servise  # type: ignore[attr-defined]  # noqa: B018


def test_the_version_is_that_of_the_package() -> None:
    assert lucius_sdk.__version__.count(".") >= 2
