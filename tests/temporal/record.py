"""Records the histories that `test_replay` replays: `python -m tests.temporal.record [NAME…]`.

A history that is there stays as it is: it stands for workflows that an older release began. Record
another one beside it when the workflow has learnt something new, with `--as SUFFIX`; delete one
when no workflow of its time can run any more.
"""

import argparse
import asyncio
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowFailureError, WorkflowHistory

from lucius_orchestrator.temporal.client import WorkflowSettings
from tests.temporal.scenarios import SCENARIOS, history_limit
from tests.temporal.stage import SKEW, Stage, runs_of, working
from tests.temporal_server import temporal_server

HISTORIES = Path(__file__).parent / "histories"
_OF_THE_MACHINE = frozenset({"stackTrace", "workerVersion", "sdkMetadata", "meteringMetadata"})


async def record(address: str, names: Iterable[str], suffix: str) -> None:
    for name in names:
        for number, history in enumerate(await recorded(address, name), 1):
            file = HISTORIES / f"{name}{suffix}.{number}.json"
            if file.exists():
                print(f"{file.name} is there already")
                continue
            file.write_text(_text(history))
            print(f"{file.name}: {len(history.events)} events")


async def recorded(address: str, name: str) -> list[WorkflowHistory]:
    """The histories of one job that takes this course."""
    plays, _ = SCENARIOS[name]
    settings = WorkflowSettings(skew=SKEW, history_limit=history_limit(name))
    stage = await Stage.new(address, settings)
    stage.job_id = f"job_{name}"
    async with working(stage):
        await plays(stage)
        with suppress(WorkflowFailureError):
            await stage.outcome()
        return await runs_of(stage)


def _text(history: WorkflowHistory) -> str:
    return json.dumps(_shown(history.to_json_dict()), indent=1) + "\n"


def _shown(value: Any) -> Any:
    """Without what names the machine, and what replaying does not look at."""
    if isinstance(value, dict):
        return {k: _shown(v) for k, v in value.items() if k not in _OF_THE_MACHINE}
    return [_shown(item) for item in value] if isinstance(value, list) else value


def _main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENARIOS))
    parser.add_argument("--as", dest="suffix", default="", help="added to the names of the files")
    given = parser.parse_args()
    HISTORIES.mkdir(exist_ok=True)
    with temporal_server() as server:
        asyncio.run(record(server.address, given.names or SCENARIOS, given.suffix))


if __name__ == "__main__":
    _main()
