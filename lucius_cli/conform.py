"""`lucius conform`: the conformance suite without pytest."""

import asyncio
import signal
import sys
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from lucius_cli.failures import EnvironmentFailed, Unsuitable
from lucius_cli.output import JsonFlag, Table, print_json, print_line, print_table, say

if TYPE_CHECKING:
    from contract_tests.baseline import Baseline
    from contract_tests.contract import LoadedContract
    from contract_tests.verdicts import Report

T = TypeVar("T")

app = typer.Typer(help="Prove that a service keeps the contract.", no_args_is_help=True)

ContractArgument = Annotated[
    Path, typer.Argument(metavar="CONTRACT", help="contract.yaml of the service, or its folder.")
]
LevelOption = Annotated[
    str | None,
    typer.Option(help="core or full; else the highest level that the contract claims."),
]


@app.command("run")
def run(
    contract: ContractArgument,
    level: LevelOption = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="A rule, a scenario or a pattern, as LC-07, LC-07/frozen, LC-1*."),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            dir_okay=False, help="A YAML file of known failures; one that passes now fails."
        ),
    ] = None,
    reports: Annotated[
        Path | None,
        typer.Option(
            "--report",
            file_okay=False,
            help="Write report.json, junit.xml, report.html and badge.svg into this folder.",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="Keep what the service writes and logs here."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Judge a service. Exit codes: 0 conformant, 1 not, 2 usage, 3 the harness or its environment
    failed, 5 incomplete: some rules were not judged."""
    from contract_tests.baseline import apply
    from contract_tests.reports import terminal

    loaded, known = _loaded(contract), _baseline(baseline)
    say(f"{loaded.contract.service}: judging {loaded.path}")
    tell = None if as_json else _telling()
    with _understood():
        report = _judged(loaded, level, only or [], tell, _folder(keep))
    report = apply(report, known)
    if reports is not None:
        _write(report, reports)
    if as_json:
        from contract_tests.reports.json_report import json_text

        print_line(json_text(report))
    else:
        print_line(terminal.summary(report, colour=_is_coloured()))
    raise typer.Exit(report.exit_code)


@app.command("list")
def list_rules(as_json: JsonFlag = False) -> None:
    """All rules, and the scenarios that judge them."""
    from contract_tests.explaining import scenarios_of
    from contract_tests.rules import RULES

    if as_json:
        print_json(
            [
                {
                    "id": rule.id,
                    "level": rule.level,
                    "statement": rule.statement,
                    "clause": rule.clause,
                    "needs": rule.needs,
                    "scenarios": [scenario.name for scenario in scenarios_of(rule)],
                }
                for rule in RULES
            ]
        )
        return
    rows = [(rule.id, rule.level, rule.statement) for rule in RULES]
    print_table(Table(("rule", "level", "statement"), rows))


@app.command("explain")
def explain(rule_id: Annotated[str, typer.Argument(metavar="RULE", help="As LC-07.")]) -> None:
    """What a rule asks for, why, how it is judged, and what to do when it fails."""
    from contract_tests.explaining import explained
    from contract_tests.rules import rule

    with _understood():
        print_line(explained(rule(rule_id)))


@app.command("debug")
def debug(
    contract: ContractArgument,
    case: Annotated[str, typer.Argument(metavar="CASE", help="As LC-07/frozen.")],
    keep: Annotated[
        Path, typer.Option(file_okay=False, help="Where files and the service's log are kept.")
    ] = Path(".lucius/conform"),
) -> None:
    """Judge one case and show everything as it happens; what was written is kept."""
    from contract_tests.reports import terminal

    loaded = _loaded(contract)
    folder = _folder(keep)
    with _understood():
        report = _stoppable(_debugged(loaded, case, folder))
    for outcome in report.outcomes:
        print_line(terminal.line(outcome, colour=_is_coloured()))
        if outcome.reason:
            print_line(f"  {outcome.reason}")
    say(f"files and log: {folder}")
    raise typer.Exit(1 if report.failures else 3 if report.exit_code == 3 else 0)


@app.command("verify")
def verify(
    report: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="A report.json.")],
    level: Annotated[str, typer.Option(help="The level that it must prove.")] = "core",
) -> None:
    """Whether a report proves conformance: it is whole, consistent and of the level asked for."""
    from contract_tests.reports.json_report import ReportUnusable, read_report
    from contract_tests.rules import Level

    wanted = _level(level)
    try:
        found = read_report(report.read_text(encoding="utf-8"))
    except (ReportUnusable, OSError, UnicodeDecodeError) as error:
        raise Unsuitable(f"{report}: {error}") from error
    print_line(found.headline)
    if found.exit_code == 0 and wanted is Level.FULL and found.level is Level.CORE:
        say("it proves level core, not full")
        raise typer.Exit(5)
    raise typer.Exit(found.exit_code)


@app.command("load")
def load(
    contract: ContractArgument,
    jobs: Annotated[int, typer.Option(min=1, max=100_000, help="How many directives.")] = 200,
    via: Annotated[str | None, typer.Option(help="http or bus; else the contract's first.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """How many directives a second the service does, and how many at once. No verdict."""
    from contract_tests.load import load as measure
    from lucius_orchestrator.domain.aggregate import ReplyVia

    loaded = _loaded(contract)
    if via not in (None, *ReplyVia):
        raise Unsuitable(f"--via {via}: must be http or bus")
    with _understood():
        way = None if via is None else ReplyVia(via)
        found = _stoppable(measure(loaded, jobs, way))
    if as_json:
        print_json({**found._asdict(), "per_second": found.per_second})
        return
    print_line(
        f"{found.jobs} directives over {found.via} in {found.seconds:.2f} s: "
        f"{found.per_second:.1f} a second"
    )
    print_line(f"at most {found.most_at_once} at once; stated concurrency {found.concurrency}")
    print_line(
        f"from publish to RESULT: median {found.median_ms:.0f} ms, 99 of 100 within"
        f" {found.p99_ms:.0f} ms"
    )


def _loaded(path: Path) -> "LoadedContract":
    from contract_tests.contract import load_contract

    with _understood():
        return load_contract(path)


def _judged(
    loaded: "LoadedContract", level: str | None, only: list[str], tell: Any, keep: Path | None
) -> "Report":
    from contract_tests.runner import run as judge

    wanted = None if level is None else _level(level)
    return _stoppable(judge(loaded, level=wanted, only=only, tell=tell, keep=keep))


async def _debugged(loaded: "LoadedContract", case: str, folder: Path | None) -> "Report":
    from contract_tests.runner import run as judge
    from orchestrator_mock import Entry, What

    def watch(entry: Entry) -> None:
        told = entry.shown().removeprefix(f"{What.NOTE} ")
        print_line(f"{entry.at:9.3f}  {entry.job_id[-6:]:6}  {told}")

    return await judge(loaded, only=[case], keep=folder, watch=watch)


def _stoppable(judging: Coroutine[Any, Any, T]) -> T:
    """SIGTERM ends it as Ctrl-C does: the service under test is stopped first."""

    async def run() -> T:
        task = asyncio.current_task()
        assert task is not None, "it runs in one"
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await judging

    try:
        return asyncio.run(run())
    except asyncio.CancelledError as error:
        raise KeyboardInterrupt from error


def _baseline(path: Path | None) -> "Baseline":
    """Read before the service is judged: that takes minutes."""
    from contract_tests.baseline import Baseline, load_baseline

    if path is None:
        return Baseline(known_failures=())
    with _understood():
        return load_baseline(path)


def _write(report: "Report", folder: Path) -> None:
    from contract_tests.reports.writing import write_all

    try:
        for path in write_all(report, folder):
            say(f"written: {path}")
    except OSError as error:
        raise EnvironmentFailed(f"{folder} cannot be written to: {error.strerror}") from error


def _telling() -> Any:
    from contract_tests.reports import terminal

    return lambda outcome: print_line(terminal.line(outcome, colour=_is_coloured()))


def _folder(path: Path | None) -> Path | None:
    if path is None:
        return None
    path.mkdir(parents=True, exist_ok=True)
    return path.resolve()


def _is_coloured() -> bool:
    return sys.stdout.isatty()


def _level(text: str) -> Any:
    from contract_tests.rules import Level

    try:
        return Level(text)
    except ValueError as error:
        raise Unsuitable(f"--level {text}: must be core or full") from error


@contextmanager
def _understood() -> Iterator[None]:
    """What the caller got wrong is said, without a traceback."""
    from contract_tests.baseline import BaselineUnusable
    from contract_tests.contract import ContractUnusable
    from contract_tests.rules import UnknownRule
    from contract_tests.runner import NothingChosen

    try:
        yield
    except (BaselineUnusable, ContractUnusable, NothingChosen, UnknownRule) as error:
        raise Unsuitable(str(error)) from error
