"""Protocols from App Configuration: the sentinel, labels, and what happens while it is away."""

import json
import logging
import threading
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import pytest
from azure.core.credentials import AccessToken

import lucius_azure.app_configuration
from lucius_azure.app_configuration import open_app_configuration
from lucius_orchestrator.adapters.registry import (
    RegistryError,
    RegistryUnavailable,
    YamlRegistry,
)
from lucius_orchestrator.adapters.registry.app_configuration import AppConfigurationRegistry
from lucius_orchestrator.adapters.registry.app_configuration_store import (
    CLIENT_OPTIONS,
    AppConfigurationStore,
)
from lucius_orchestrator.adapters.registry.entries import Keys
from lucius_orchestrator.adapters.registry.last_good import LastGoodCopy
from lucius_orchestrator.adapters.registry.sources import SHIPPED
from lucius_orchestrator.ports.registry import Snapshot
from lucius_settings.secret import Secret
from tests.registry.app_configuration_double import (
    AppConfiguration,
    Fault,
    running_app_configuration,
)
from tests.registry.folder import PROTOCOL, named
from tests.registry.stores import KEYS, LIMIT, NOW, loaded, opened, put
from tests.webhooks.receiver import new_certificate

SECOND = timedelta(seconds=1)
NEW = PROTOCOL.replace('"1"', '"2"')
BROKEN = PROTOCOL.replace("service: translate", "service: NO")
NEVER = threading.Event()
TOKEN = "of-the-identity"  # noqa: S105


def versions(snapshot: Snapshot) -> dict[str, str]:
    return {name: protocol.version for name, protocol in snapshot.protocols.items()}


class Told(NamedTuple):
    """What the registry logs."""

    captured: pytest.LogCaptureFixture

    def events(self) -> list[str]:
        """Those since the last time that somebody asked."""
        records = [record for record in self.captured.records if record.name.endswith(".registry")]
        self.captured.clear()
        return [record.message for record in records]

    def __str__(self) -> str:
        return "\n".join(str(vars(record)) for record in self.captured.records)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> Told:
    caplog.set_level(logging.DEBUG)
    return Told(caplog)


async def test_the_shipped_protocols_are_the_same_from_there(double: AppConfiguration) -> None:
    double.page_size = 2
    for path in (SHIPPED / "protocols").iterdir():
        double.put(f"lucius:protocols:{path.stem}", path.read_text())
    double.put("lucius:defaults", (SHIPPED / "defaults.yaml").read_text())
    async with loaded(double) as registry:
        assert registry.snapshot() == YamlRegistry(None).load()


async def test_what_has_the_label_counts_over_what_has_none(double: AppConfiguration) -> None:
    put(double, PROTOCOL, named("b"), named("c"))
    put(double, NEW, label="prod")
    put(double, named("b").replace('"1"', '"9"'), named("d"), label="staging")
    async with loaded(double, label="prod") as registry:
        assert versions(registry.snapshot()) == {"translate": "2", "b": "1", "c": "1"}
    async with loaded(double) as registry:
        assert versions(registry.snapshot()) == {"translate": "1", "b": "1", "c": "1"}


async def test_what_begins_otherwise_is_not_read(double: AppConfiguration) -> None:
    put(double, PROTOCOL)
    double.put("other:protocols:x", "[")
    double.put(
        ".appconfig.featureflag/x", "{}", None, "application/vnd.microsoft.appconfig.ff+json"
    )
    double.put("team/protocols:b", named("b"))
    async with loaded(double) as registry:
        assert set(registry.snapshot().protocols) == {"translate"}
    async with loaded(double, keys=Keys("team/", "lucius:sentinel")) as registry:
        assert set(registry.snapshot().protocols) == {"b"}


async def test_nothing_is_taken_up_before_the_sentinel_changes(double: AppConfiguration) -> None:
    put(double, PROTOCOL)
    async with loaded(double) as registry:
        before = registry.snapshot()
        double.put("lucius:protocols:translate", NEW)
        double.put("lucius:protocols:b", named("b"))
        double.asked.clear()
        assert not await registry.refresh()
        assert registry.snapshot() is before
        assert len(double.asked) == 1, "only the sentinel is looked at"
        double.touch()
        assert await registry.refresh()
        assert versions(registry.snapshot()) == {"translate": "2", "b": "1"}
        assert not await registry.refresh()


async def test_the_sentinel_has_the_label_too(double: AppConfiguration) -> None:
    put(double, PROTOCOL)
    put(double, NEW, label="prod")
    async with loaded(double, label="prod") as registry:
        put(double, named("b"))
        assert not await registry.refresh()
        double.touch(label="prod")
        assert await registry.refresh()
        assert set(registry.snapshot().protocols) == {"translate", "b"}


async def test_an_entry_that_was_deleted_is_gone_after_the_sentinel(
    double: AppConfiguration,
) -> None:
    put(double, PROTOCOL, named("b"))
    async with loaded(double) as registry:
        double.delete("lucius:protocols:b")
        double.touch()
        assert await registry.refresh()
        assert set(registry.snapshot().protocols) == {"translate"}


@pytest.mark.parametrize("at", ["the start", "a refresh"])
async def test_a_change_that_comes_while_entries_are_read_is_taken_up_at_the_next_look(
    double: AppConfiguration, at: str
) -> None:
    put(double, PROTOCOL)
    async with opened(double) as registry:
        if at == "a refresh":
            await registry.load()
            put(double, named("b"))
        double.meanwhile = lambda: put(double, NEW)
        if at == "the start":
            await registry.load()
        else:
            assert await registry.refresh()
        assert versions(registry.snapshot())["translate"] == "1"
        assert await registry.refresh()
        assert versions(registry.snapshot())["translate"] == "2"


async def test_without_a_sentinel_it_is_said_and_the_first_one_is_a_change(
    double: AppConfiguration, told: Told
) -> None:
    double.put("lucius:protocols:translate", PROTOCOL)
    async with loaded(double) as registry:
        assert not registry.has_sentinel
        assert told.events() == ["registry.unwatched", "registry.loaded"]
        double.put("lucius:protocols:translate", NEW)
        assert not await registry.refresh()
        double.touch()
        assert await registry.refresh()
        assert registry.has_sentinel
        double.delete("lucius:sentinel")
        assert await registry.refresh()
        assert not registry.has_sentinel


FAULTS = {
    "500": (Fault(500), "answers 500"),
    "503": (Fault(503, {"Retry-After": "3600"}), "answers 503"),
    "429": (
        Fault(429, {"Retry-After": "3600"}),
        "answers 429: too many requests: raise LUCIUS_APP_CONFIGURATION_REFRESH_SECONDS",
    ),
    "403": (
        Fault(403),
        "answers 403: the identity needs the role App Configuration Data Reader, or this network is"
        " not let in",
    ),
    "dropped": (
        Fault(drops=True),
        "cannot be reached: Server disconnected: check its address, and the network",
    ),
    "a page": (
        Fault(200, body=b"<html>"),
        "answers what cannot be read (DecodeError): is it App Configuration?",
    ),
    "a list": (
        Fault(200, body=[1]),
        "answers what cannot be read (AttributeError): is it App Configuration?",
    ),
    "no keys": (
        Fault(200, body={"items": [{}]}, on="/kv?"),
        "answers what cannot be read (TypeError): is it App Configuration?",
    ),
}


@pytest.mark.parametrize(("fault", "reason"), FAULTS.values(), ids=FAULTS)
async def test_a_store_that_fails_leaves_the_last_good_set_in_force(
    double: AppConfiguration, told: Told, fault: Fault, reason: str
) -> None:
    put(double, PROTOCOL)
    async with loaded(double) as registry:
        good = registry.snapshot()
        put(double, NEW)
        double.fault = fault
        for _ in range(2):
            assert not await registry.refresh()
            assert registry.snapshot() is good
            assert str(registry.error) == f"{double.endpoint}: {reason}"
        double.fault = None
        assert await registry.refresh()
        assert registry.error is None
        assert versions(registry.snapshot()) == {"translate": "2"}
    assert told.events() == ["registry.loaded", "registry.away", "registry.back", "registry.loaded"]


async def test_a_store_that_hangs_is_left_alone_after_a_while(double: AppConfiguration) -> None:
    put(double, PROTOCOL)
    async with opened(double, limit=SECOND / 20) as registry:
        double.fault = Fault(hang=NEVER)
        with pytest.raises(RegistryUnavailable, match=r"no answer within 0\.05 s"):
            await registry.load()
        double.fault = Fault(hang=NEVER, on="/kv?")
        with pytest.raises(RegistryUnavailable, match=r"no answer within 0\.05 s"):
            await registry.load()


async def test_a_change_is_not_lost_when_the_entries_cannot_be_read(
    double: AppConfiguration,
) -> None:
    put(double, PROTOCOL)
    async with loaded(double) as registry:
        put(double, NEW)
        double.fault = Fault(503, on="/kv?")
        assert not await registry.refresh()
        double.fault = None
        assert await registry.refresh()
        assert versions(registry.snapshot()) == {"translate": "2"}


async def test_a_fault_on_the_second_page_leaves_the_last_good_set_in_force(
    double: AppConfiguration,
) -> None:
    put(double, PROTOCOL, named("b"), named("c"))
    async with loaded(double) as registry:
        double.page_size = 1
        put(double, NEW)
        double.fault = Fault(503, on="/kv?after=")
        assert not await registry.refresh()
        assert versions(registry.snapshot()) == {"translate": "1", "b": "1", "c": "1"}


async def test_a_refusal_outlasts_an_absence(double: AppConfiguration) -> None:
    put(double, PROTOCOL)
    async with loaded(double) as registry:
        put(double, BROKEN)
        await registry.refresh()
        refusal = registry.error
        assert str(refusal).startswith("lucius:protocols:translate: steps[0].service: must be")
        double.fault = Fault(500)
        await registry.refresh()
        assert "answers 500" in str(registry.error)
        double.fault = None
        await registry.refresh()
        assert registry.error is refusal


async def test_a_wrong_access_key_is_told_and_never_shown(
    double: AppConfiguration, told: Told
) -> None:
    put(double, PROTOCOL)
    secret = "aHVudGVyMg=="  # noqa: S105
    connection = f"Endpoint={double.endpoint};Id=test-id;Secret={secret}"
    async with open_app_configuration(Secret(connection), None, **CLIENT_OPTIONS) as client:
        store = AppConfigurationStore(client, double.endpoint, KEYS, None, LIMIT)
        registry = AppConfigurationRegistry(store, lambda: NOW)
        with pytest.raises(
            RegistryUnavailable, match="answers 401: the access key is not acc"
        ) as no:
            await registry.load()
    assert double.asked
    assert secret not in f"{told} {no.value!r} {no.value} {vars(no.value)}"


class Identity:
    """A credential whose token is good for App Configuration alone."""

    def __init__(self) -> None:
        self.is_closed = False

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        assert scopes == ("https://appconfig.azure.com/.default",)
        return AccessToken(TOKEN, 2**33)

    async def __aenter__(self) -> "Identity":
        return self

    async def __aexit__(self, *_: type | BaseException | TracebackType | None) -> None:
        self.is_closed = True


async def test_the_identity_of_the_process_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = Identity()
    monkeypatch.setattr(lucius_azure.app_configuration, "default_credential", lambda: identity)
    certificate = new_certificate(tmp_path, "localhost")
    with running_app_configuration(certificate.server_context(), "localhost") as double:
        put(double, PROTOCOL)
        double.token = TOKEN
        options = {**CLIENT_OPTIONS, "connection_verify": str(certificate.file)}
        async with open_app_configuration(None, double.endpoint, **options) as client:
            store = AppConfigurationStore(client, double.endpoint, KEYS, None, LIMIT)
            await AppConfigurationRegistry(store, lambda: NOW).load()
    assert identity.is_closed


@pytest.fixture
def copy(tmp_path: Path, double: AppConfiguration) -> LastGoodCopy:
    return LastGoodCopy(tmp_path / "data" / "app-configuration.json", [double.endpoint, "prod"])


async def test_a_start_bears_a_short_failure(double: AppConfiguration) -> None:
    put(double, PROTOCOL)
    double.fault = Fault(503)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            double.fault = None

    async with loaded(double, pauses=(SECOND, 3 * SECOND), sleep=sleep) as registry:
        assert registry.error is None
    assert pauses == [1.0, 3.0]


async def test_a_start_without_store_and_copy_is_refused(
    double: AppConfiguration, copy: LastGoodCopy
) -> None:
    double.fault = Fault(503)
    async with opened(double, copy=copy) as registry:
        with pytest.raises(RegistryError) as refusal:
            await registry.load()
    assert str(refusal.value) == (
        f"{copy.file}: there is no copy that could be used instead\n{double.endpoint}: answers 503"
    )


async def test_a_start_without_store_uses_the_copy_and_says_so(
    double: AppConfiguration, copy: LastGoodCopy, told: Told
) -> None:
    double.put("lucius:tenants:acme", '{"max_inflight": 3}', None, "application/json")
    put(double, PROTOCOL)
    async with loaded(double, copy=copy) as registry:
        good = registry.snapshot()
    assert told.events() == ["registry.loaded"]
    double.fault = Fault(503)
    async with loaded(double, copy=copy) as registry:
        assert registry.snapshot() == good
        assert told.events() == ["registry.copy_used", "registry.away"]
        assert str(registry.error) == (
            f"{copy.file}: the copy of 2026-11-16T09:00:00+00:00 is in force\n"
            f"{double.endpoint}: answers 503"
        )
        double.fault = None
        double.put("lucius:protocols:translate", NEW)
        assert await registry.refresh(), "nothing was read yet: the sentinel does not matter"
        assert registry.error is None
        assert versions(registry.snapshot()) == {"translate": "2"}


async def test_a_start_with_a_wrong_entry_uses_the_copy_and_waits_for_the_sentinel(
    double: AppConfiguration, copy: LastGoodCopy, told: Told
) -> None:
    put(double, PROTOCOL)
    async with loaded(double, copy=copy):
        pass
    put(double, BROKEN)
    assert told.events() == ["registry.loaded"]
    async with loaded(double, copy=copy) as registry:
        assert versions(registry.snapshot()) == {"translate": "1"}
        assert told.events() == ["registry.copy_used", "registry.refused"]
        assert "lucius:protocols:translate: steps[0].service: must be" in str(registry.error)
        assert not await registry.refresh()
        put(double, NEW)
        assert await registry.refresh()
        assert registry.error is None


async def test_a_set_that_was_refused_does_not_become_the_copy(
    double: AppConfiguration, copy: LastGoodCopy
) -> None:
    put(double, PROTOCOL)
    async with loaded(double, copy=copy) as registry:
        before = copy.file.read_bytes()
        put(double, BROKEN)
        await registry.refresh()
        assert copy.file.read_bytes() == before
        put(double, NEW)
        await registry.refresh()
        assert copy.file.read_bytes() != before


async def test_the_copy_belongs_to_its_owner(double: AppConfiguration, copy: LastGoodCopy) -> None:
    put(double, PROTOCOL)
    async with loaded(double, copy=copy):
        pass
    assert copy.file.stat().st_mode & 0o777 == 0o600
    assert list(copy.file.parent.iterdir()) == [copy.file]


def other_origin(copy: LastGoodCopy) -> LastGoodCopy:
    return LastGoodCopy(copy.file, ["https://other.azconfig.io", "prod"])


def of_another_form(copy: LastGoodCopy) -> LastGoodCopy:
    content = json.loads(copy.file.read_bytes())
    copy.file.write_text(json.dumps({**content, "form": 2}))
    return copy


def cut_in_half(copy: LastGoodCopy) -> LastGoodCopy:
    copy.file.write_bytes(copy.file.read_bytes()[:-20])
    return copy


def without_entries(copy: LastGoodCopy) -> LastGoodCopy:
    content = json.loads(copy.file.read_bytes())
    copy.file.write_text(json.dumps({**content, "entries": [["a"]]}))
    return copy


def with_a_key_that_is_none(copy: LastGoodCopy) -> LastGoodCopy:
    content = json.loads(copy.file.read_bytes())
    copy.file.write_text(json.dumps({**content, "entries": [[1, "a", None]]}))
    return copy


def with_a_wrong_entry(copy: LastGoodCopy) -> LastGoodCopy:
    copy.file.write_text(copy.file.read_text().replace("service: translate", "service: NO"))
    return copy


@pytest.mark.parametrize(
    "spoiled",
    [
        other_origin,
        of_another_form,
        cut_in_half,
        without_entries,
        with_a_key_that_is_none,
        with_a_wrong_entry,
    ],
)
async def test_a_copy_that_cannot_be_used_does_not_count(
    double: AppConfiguration, copy: LastGoodCopy, spoiled: Any
) -> None:
    put(double, PROTOCOL)
    async with loaded(double, copy=copy):
        pass
    double.fault = Fault(503)
    async with opened(double, copy=spoiled(copy)) as registry:
        with pytest.raises(RegistryError, match="answers 503"):
            await registry.load()


async def test_a_disk_that_takes_no_copy_does_not_stop_the_start(
    double: AppConfiguration, tmp_path: Path, told: Told
) -> None:
    put(double, PROTOCOL)
    (tmp_path / "data").write_text("a file")
    copy = LastGoodCopy(tmp_path / "data" / "app-configuration.json", [])
    async with loaded(double, copy=copy) as registry:
        assert registry.error is None
    assert told.events() == ["registry.loaded", "registry.copy_failed"]


async def test_a_refused_set_without_a_copy_ends_the_start(double: AppConfiguration) -> None:
    put(double, BROKEN)
    async with opened(double) as registry:
        with pytest.raises(RegistryError, match="lucius:protocols:translate: steps"):
            await registry.load()
