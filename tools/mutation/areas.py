"""The areas: which tests judge which product files."""

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SERVERS = ("postgres", "azure", "redis")
"""In the names of files and tests that need a server: they are left out."""


@dataclass(frozen=True, slots=True)
class Area:
    """`sources` and `tests` are globs, separated by spaces. `tier`: see `tests/runner/tiers.py`."""

    name: str
    sources: str
    tests: str
    tier: str = "check"

    def source_files(self) -> list[str]:
        files = _matches(self.sources)
        return [file for file in files if not any(each in file for each in SERVERS)]

    def test_paths(self) -> list[str]:
        return _matches(self.tests)


def _matches(globs: str) -> list[str]:
    found: set[str] = set()
    for glob in globs.split():
        paths = [str(path.relative_to(ROOT)) for path in ROOT.glob(glob)]
        if not paths:
            raise SystemExit(f"tools/mutation/areas.py: nothing matches {glob}")
        found.update(paths)
    return sorted(found)


_LEDGER = "lucius_orchestrator/adapters/ledger"
AREAS = (
    Area("engine", "lucius_orchestrator/engine/*.py", "tests/engine"),
    Area("dispatcher", "lucius_orchestrator/outbox/*.py", "tests/engine"),
    Area("sweepers", "lucius_orchestrator/sweepers/*.py", "tests/engine"),
    Area(
        "ledgers",
        f"{_LEDGER}/*.py {_LEDGER}/tables/*.py {_LEDGER}/sqlite/*.py",
        "tests/ledger tests/webhooks",
    ),
    Area("webhooks", "lucius_orchestrator/webhooks/*.py", "tests/webhooks"),
    Area(
        "sdk-runtime",
        "lucius_sdk/runtime/*.py lucius_sdk/replies/*.py lucius_sdk/service.py",
        "tests/sdk/operations tests/sdk/process tests/sdk/replies tests/sdk/runtime"
        " tests/sdk/service",
        tier="test",
    ),
    Area("dedup-stores", "lucius_sdk/idempotency_store/**/*.py", "tests/sdk/idempotency_store"),
    Area(
        "harness",
        "contract_tests/scenarios/*.py contract_tests/bench.py contract_tests/rules.py",
        "tests/conform/test_broken_services*.py tests/conform/test_judging.py"
        " tests/conform/test_rules.py",
    ),
    Area("outbox", "lucius_outbox/**/*.py", "tests/outbox", tier="test"),
    Area("emulator", "servicebus_emulator/**/*.py", "tests/emulator", tier="test"),
    Area("artifacts", "lucius_artifacts/**/*.py", "tests/artifacts"),
)
