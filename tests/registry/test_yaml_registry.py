"""Loading, falling back on what is shipped, and reloading while the program runs."""

import asyncio
import logging
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.registry import RegistryError, YamlRegistry
from lucius_orchestrator.domain.aggregate import ReplyVia, StepPolicy
from lucius_orchestrator.ports.registry import GlobalConfig, Registry, Snapshot, TenantConfig
from tests.registry.folder import PROTOCOL, named, write

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
BROKEN = PROTOCOL.replace("service: translate", "service: NO")


def loaded(folder: Path) -> YamlRegistry:
    registry = YamlRegistry(folder)
    registry.load()
    return registry


def versions(snapshot: Snapshot) -> dict[str, str]:
    return {name: protocol.version for name, protocol in snapshot.protocols.items()}


def test_a_step_says_what_differs_and_the_default_policy_says_the_rest(tmp_path: Path) -> None:
    policy = StepPolicy(ack_timeout=5 * SECOND, reply_via=ReplyVia.BUS, max_attempts=7)
    write(
        tmp_path,
        a=f"{PROTOCOL}"
        "    lease: 1h\n    heartbeat: 90s\n    timeout: 1d\n"
        "    backoff: [0s, 500ms, 2m]\n    max_attempts: 1\n    reply_via: http\n",
        b=named("b"),
    )
    protocols = YamlRegistry(tmp_path, policy).load().protocols
    assert protocols["b"].steps[0].policy == policy
    assert protocols["translate"].steps[0].policy == StepPolicy(
        ack_timeout=5 * SECOND,
        reply_via=ReplyVia.HTTP,
        lease=HOUR,
        heartbeat=90 * SECOND,
        ceiling=24 * HOUR,
        backoff=(0 * SECOND, SECOND / 2, 2 * MINUTE),
        max_attempts=1,
    )


def test_defaults_and_tenants_are_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        defaults="""
            mode: BURST
            max_inflight: 100
            max_inflight_per_tenant: 10
            max_inflight_per_mode: {SAFE: 60, BURST: 0}
            job_sla: 2d
        """,
        tenants="""
            acme: {mode: SAFE, allowed_modes: [SAFE, BURST], max_inflight: 3}
            empty: {}
        """,
    )
    snapshot = loaded(tmp_path).snapshot()
    assert snapshot.defaults == GlobalConfig(
        Mode.BURST, 100, 10, {Mode.DEFAULT: 60, Mode.BURST: 0}, timedelta(days=2)
    )
    both = frozenset({Mode.DEFAULT, Mode.BURST})
    assert snapshot.tenant("acme") == TenantConfig(Mode.DEFAULT, both, 3)
    assert snapshot.tenant("empty") == snapshot.tenant("nobody") == TenantConfig()


def test_a_request_type_is_found_by_its_aliases_and_with_arrows(tmp_path: Path) -> None:
    write(tmp_path, a=named("a", request_type="A_B", more="aliases: [A→B, old name, C→D]\n"))
    snapshot = loaded(tmp_path).snapshot()
    for name in ("A_B", "A→B", "old name", "C→D", "C_D"):
        assert snapshot.protocol_of(name) is snapshot.protocols["a"]
    assert snapshot.protocol_of("a_b") is None
    assert snapshot.protocols["a"].aliases == ("A→B", "old name", "C→D")


def test_a_folder_of_protocols_replaces_the_shipped_ones(tmp_path: Path) -> None:
    write(tmp_path, a=PROTOCOL)
    (tmp_path / "protocols" / ".a.yaml.swp").write_text("[")
    (tmp_path / "protocols" / "notes.txt").write_text("[")
    assert set(loaded(tmp_path).snapshot().protocols) == {"translate"}


def test_without_a_folder_of_protocols_the_shipped_ones_stay(tmp_path: Path) -> None:
    shipped = YamlRegistry(None).load()
    snapshot = loaded(write(tmp_path, tenants="acme: {mode: BURST}"))
    assert snapshot.snapshot().protocols == shipped.protocols
    assert snapshot.snapshot().tenant("acme").mode is Mode.BURST
    assert not shipped.tenants


def test_the_first_load_raises_and_nothing_is_there(tmp_path: Path) -> None:
    registry = YamlRegistry(write(tmp_path, a=BROKEN))
    with pytest.raises(RegistryError, match=r"protocols/a\.yaml:6"):
        registry.load()
    with pytest.raises(RuntimeError, match="nothing was loaded"):
        registry.snapshot()


def test_a_reload_keeps_the_last_good_set_and_takes_a_mended_one(tmp_path: Path) -> None:
    registry = loaded(write(tmp_path, a=PROTOCOL))
    good = registry.snapshot()
    write(tmp_path, a=BROKEN, b=named("b"))
    error = registry.reload()
    assert error is not None
    assert [problem.line for problem in error.problems] == [6]
    assert registry.error is error
    assert registry.snapshot() is good

    write(tmp_path, a=PROTOCOL.replace('"1"', '"2"'))
    assert registry.reload() is None
    assert registry.error is None
    assert versions(registry.snapshot()) == {"translate": "2", "b": "1"}
    assert versions(good) == {"translate": "1"}


def test_a_refresh_reads_only_what_has_changed(tmp_path: Path) -> None:
    registry = loaded(write(tmp_path, a=PROTOCOL))
    before = registry.snapshot()
    assert not registry.refresh()
    write(tmp_path, a=PROTOCOL)
    assert not registry.refresh()
    assert registry.snapshot() is before

    write(tmp_path, a=PROTOCOL.replace('"1"', '"2"'))
    assert registry.refresh()
    write(tmp_path, b=named("b"))
    assert registry.refresh()
    (tmp_path / "protocols" / "a.yaml").unlink()
    assert registry.refresh()
    assert versions(registry.snapshot()) == {"b": "1"}


def test_files_that_go_back_to_the_last_good_set_clear_the_error(tmp_path: Path) -> None:
    registry = loaded(write(tmp_path, a=PROTOCOL))
    write(tmp_path, a=BROKEN)
    assert not registry.refresh()
    assert registry.error is not None
    write(tmp_path, a=PROTOCOL)
    assert registry.refresh()
    assert registry.error is None


def test_protocols_that_are_gone_do_not_bring_the_shipped_ones_back(tmp_path: Path) -> None:
    registry = loaded(write(tmp_path, a=PROTOCOL))
    shutil.rmtree(tmp_path / "protocols")
    error = registry.reload()
    assert str(error) == "protocols: cannot be read: No such file or directory"
    shutil.rmtree(tmp_path)
    assert str(registry.reload()) == f"{tmp_path}: is not a folder"
    assert set(registry.snapshot().protocols) == {"translate"}


def test_the_same_problems_are_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lucius_orchestrator.registry")
    registry = loaded(write(tmp_path, a=PROTOCOL))
    for text in (BROKEN, BROKEN, BROKEN + "zzz: 1\n", PROTOCOL, BROKEN):
        write(tmp_path, a=text)
        registry.reload()
    assert [record.message for record in caplog.records] == [
        "registry.loaded",
        "registry.refused",
        "registry.refused",
        "registry.loaded",
        "registry.refused",
    ]
    assert caplog.records[0].__dict__["protocols"] == ["translate"]
    (first,) = caplog.records[1].__dict__["problems"]
    assert first.startswith("protocols/a.yaml:6: steps[0].service: must be")


async def test_a_watch_takes_what_two_looks_found_the_same(tmp_path: Path) -> None:
    registry = loaded(write(tmp_path, a=PROTOCOL))
    half, whole = named("b"), {"b": named("b"), "c": named("c")}
    before_each_look = iter([{}, {"b": half}, whole, {}, {"a": BROKEN}, {}, {"a": PROTOCOL}, {}])
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        write(tmp_path, **next(before_each_look))

    watch = registry.watch(5 * SECOND, sleep)
    async with asyncio.timeout(10):
        first = await anext(watch)
        assert set(first.protocols) == {"translate", "b", "c"}
        assert pauses == [5.0] * 4
        second = await anext(watch)
    assert second is registry.snapshot()
    assert pauses == [5.0] * 8


def test_it_is_a_registry() -> None:
    registry: Registry = YamlRegistry(None)
    assert isinstance(registry, YamlRegistry)
