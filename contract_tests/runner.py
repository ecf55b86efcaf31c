"""Runs cases one after the other and says what became of each."""

import fnmatch
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from contract_tests.bench import PATIENCE, Bench
from contract_tests.contract import LoadedContract
from contract_tests.rules import Level
from contract_tests.scenarios import Case, all_cases
from contract_tests.timeline import timeline
from contract_tests.verdicts import HarnessFault, Moment, Outcome, Report, RuleBroken, Verdict
from orchestrator_mock import Entry

Tell = Callable[[Outcome], None]
Watch = Callable[[Entry], None]


class NothingChosen(ValueError):
    """No rule or scenario is meant by what was asked for."""


def default_level(loaded: LoadedContract) -> Level:
    """The highest that the service claims."""
    return Level.FULL if loaded.contract.heartbeats else Level.CORE


def chosen(cases: Sequence[Case], only: Sequence[str]) -> list[Case]:
    """Those whose rule or id is asked for, by name or by pattern; all if nothing is."""
    if not only:
        return list(cases)
    patterns = [text.upper() for text in only]
    found = [case for case in cases if any(_is_meant(case, text) for text in patterns)]
    if not found:
        raise NothingChosen(f"no rule or scenario is called {', '.join(only)}")
    return found


def _is_meant(case: Case, pattern: str) -> bool:
    names = (case.rule.id, case.id.upper(), f"{case.rule.id}/{case.scenario.name}".upper())
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


async def run(
    loaded: LoadedContract,
    *,
    level: Level | None = None,
    only: Sequence[str] = (),
    tell: Tell | None = None,
    keep: Path | None = None,
    patience: float = PATIENCE,
    watch: Watch | None = None,
) -> Report:
    """Judge a service. `keep` is a folder for what it writes and logs; else that is thrown away.
    `tell` hears of each case, `watch` of all that happens. `NothingChosen`."""
    level = level or default_level(loaded)
    every = list(all_cases(loaded.contract, level))
    cases = chosen(every, only)
    started, began = datetime.now(UTC), time.monotonic()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="lucius-conform-", ignore_cleanup_errors=True) as name:
        async with Bench(loaded, keep or Path(name), patience, watch) as bench:
            for case in cases:
                outcome = await judge(bench, case)
                outcomes.append(outcome)
                if tell is not None:
                    tell(outcome)
    return Report(
        service=loaded.contract.service,
        contract=str(loaded.path),
        level=level,
        started_at=started,
        seconds=time.monotonic() - began,
        outcomes=tuple(outcomes),
        version=own_version(),
        is_partial=len(cases) < len(every),
    )


async def judge(bench: Bench, case: Case) -> Outcome:
    """One case, on a service that is in order. What a failure has left is not there for the next
    one."""
    repeat = f"lucius conform run {bench.loaded.path} --only {case.id}"
    if case.lacks is not None:
        reason = f"the contract declares that the service has no {case.lacks}"
        return Outcome(case.id, case.rule.id, Verdict.SKIPPED, reason=reason, repeat=repeat)
    began = time.monotonic()
    verdict, reason, cause = Verdict.PASS, "", ""
    first = 0
    try:
        await _prepare(bench)
        first = len(bench.mock.recording)
        await case.scenario.run(bench, case.via)
        await bench.mock.clear_faults()
        bench.check()
    except RuleBroken as broken:
        verdict, reason, cause = Verdict.FAIL, str(broken), broken.cause or case.rule.causes
        if bench.mock.defects:
            verdict, reason = Verdict.FAULT, f"the mock failed: {bench.mock.defects[0]}"
    except HarnessFault as fault:
        verdict, reason = Verdict.FAULT, str(fault)
    except Exception as error:
        verdict, reason = Verdict.FAULT, f"the harness failed: {type(error).__name__}: {error}"
    seconds = time.monotonic() - began
    moments: tuple[Moment, ...] = ()
    log = ""
    if bench.is_open:
        moments = timeline(bench.mock.recording.since(first))
        log = bench.service_log() if verdict is not Verdict.PASS else ""
    if verdict is not Verdict.PASS:
        await bench.close()
    return Outcome(case.id, case.rule.id, verdict, seconds, reason, cause, repeat, moments, log)


async def _prepare(bench: Bench) -> None:
    """A service that does not start, or cannot do its sample, will not do so for the next case
    either: it is told at once."""
    if bench.is_hopeless:
        raise HarnessFault("not judged: the service did not get ready for an earlier case")
    is_new = not bench.is_open
    try:
        await bench.prepare()
        if is_new:
            await bench.calibrate()
    except (HarnessFault, RuleBroken):
        bench.is_hopeless = True
        raise


def own_version() -> str:
    try:
        return version("lucius-sdk")
    except PackageNotFoundError:
        return "unknown"
