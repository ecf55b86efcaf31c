"""Files and environment together say what is in force."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from lucius_contract.routing import Mode
from lucius_orchestrator.adapters.registry import YamlRegistry
from lucius_orchestrator.bootstrap.registry import LimitedRegistry, RegistryWatch
from lucius_orchestrator.ports.registry import Snapshot
from lucius_orchestrator.settings import load_settings
from tests.runner.deadlines import DEADLINE

PROTOCOL = """
protocol_id: stamp
version: "1"
request_type: STAMP
steps:
  - {step_type: STAMP, service: stamper, payload_schema: {type: object}}
"""


def test_what_the_environment_sets_counts_over_the_files() -> None:
    files = YamlRegistry(None)
    files.load()
    settings = load_settings({"LUCIUS_MAX_INFLIGHT": "7", "LUCIUS_MAX_INFLIGHT_BURST": "3"})
    limited = LimitedRegistry(files, settings).snapshot()
    expected = replace(
        files.snapshot().defaults,
        max_inflight=7,
        max_inflight_per_mode={**files.snapshot().defaults.max_inflight_per_mode, Mode.BURST: 3},
    )
    assert limited.defaults == expected
    assert limited.protocols is files.snapshot().protocols


def test_limits_from_the_environment_count_over_files_that_change(tmp_path: Path) -> None:
    files = YamlRegistry(tmp_path)
    files.load()
    limited = LimitedRegistry(files, load_settings({"LUCIUS_MAX_INFLIGHT": "7"}))
    assert limited.snapshot() is limited.snapshot()
    (tmp_path / "protocols").mkdir()
    (tmp_path / "protocols" / "stamp.yaml").write_text(PROTOCOL)
    files.reload()
    assert list(limited.snapshot().protocols) == ["stamp"]
    assert limited.snapshot().defaults.max_inflight == 7


async def test_a_file_that_changes_is_taken_up(tmp_path: Path) -> None:
    folder = tmp_path / "protocols"
    folder.mkdir()
    (folder / "stamp.yaml").write_text(PROTOCOL)
    files = YamlRegistry(tmp_path)
    files.load()
    seen: asyncio.Queue[Snapshot] = asyncio.Queue()
    watch = RegistryWatch(files, seen.put, timedelta(milliseconds=1))
    async with asyncio.timeout(DEADLINE), asyncio.TaskGroup() as tasks:
        tasks.create_task(watch.run())
        (folder / "stamp.yaml").write_text(PROTOCOL.replace("stamper", "sealer"))
        snapshot = await seen.get()
        await watch.stop()
    assert snapshot.protocols["stamp"].steps[0].service == "sealer"
