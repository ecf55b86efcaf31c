"""Loading, falling back on what is shipped, and reloading while the program runs."""

import asyncio
import shutil
from datetime import timedelta
from pathlib import Path

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.registry import YamlRegistry
from lucius_orchestrator.ports.registry import Snapshot
from tests.registry.folder import PROTOCOL, named, write
from tests.runner.deadlines import DEADLINE

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
BROKEN = PROTOCOL.replace("service: translate", "service: NO")


def loaded(folder: Path) -> YamlRegistry:
    registry = YamlRegistry(folder)
    registry.load()
    return registry


def versions(snapshot: Snapshot) -> dict[str, str]:
    return {name: protocol.version for name, protocol in snapshot.protocols.items()}


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


def test_protocols_that_are_gone_do_not_bring_the_shipped_ones_back(tmp_path: Path) -> None:
    registry = loaded(write(tmp_path, a=PROTOCOL))
    shutil.rmtree(tmp_path / "protocols")
    error = registry.reload()
    assert str(error) == "protocols: cannot be read: No such file or directory"
    shutil.rmtree(tmp_path)
    assert str(registry.reload()) == f"{tmp_path}: is not a folder"
    assert set(registry.snapshot().protocols) == {"translate"}


async def test_a_watch_takes_what_two_looks_found_the_same(tmp_path: Path) -> None:
    registry = loaded(write(tmp_path, a=PROTOCOL))
    half, whole = named("b"), {"b": named("b"), "c": named("c")}
    before_each_look = iter([{}, {"b": half}, whole, {}, {"a": BROKEN}, {}, {"a": PROTOCOL}, {}])
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        write(tmp_path, **next(before_each_look))

    watch = registry.watch(5 * SECOND, sleep)
    async with asyncio.timeout(DEADLINE):
        first = await anext(watch)
        assert set(first.protocols) == {"translate", "b", "c"}
        assert pauses == [5.0] * 4
        second = await anext(watch)
    assert second is registry.snapshot()
    assert pauses == [5.0] * 8
