"""`lucius doctor`: what is reachable and what is not, with the next thing to do."""

import asyncio
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import typer

from lucius_cli.failures import EnvironmentFailed, ExitCode, explained
from lucius_cli.output import JsonFlag, Table, print_json, print_table, say

if TYPE_CHECKING:
    from lucius_cli.client import Api

_OK = 200


class Finding(NamedTuple):
    name: str
    ok: bool
    detail: str


def doctor(as_json: JsonFlag = False) -> None:
    """Say what works, what does not, and what to do next."""
    findings = [*_here(os.environ), *_server(os.environ)]
    fine = all(finding.ok for finding in findings)
    if as_json:
        print_json({"ok": fine, "checks": [finding._asdict() for finding in findings]})
    else:
        print_table(
            Table(("", "what", "finding"), [("ok" if f.ok else "FAIL", *f[::2]) for f in findings])
        )
        say("all is fine" if fine else "not all is fine: see the lines that begin with FAIL")
    raise typer.Exit(ExitCode.FINE if fine else ExitCode.FAILED)


def _here(environ: Mapping[str, str]) -> Iterator[Finding]:
    """The settings, and what they name; without settings there is nothing further to look at."""
    from lucius_cli.environment import problem_lines
    from lucius_orchestrator.settings import SettingsError, load_settings

    try:
        settings = load_settings(environ)
    except SettingsError as error:
        for line in problem_lines(error):
            yield Finding("settings", ok=False, detail=line)
        return
    warned = "".join(f"; warning: {warning}" for warning in settings.warnings)
    yield Finding("settings", ok=True, detail=f"can be used{warned}")
    try:
        from lucius_orchestrator.bootstrap.checks import diagnose
    except ModuleNotFoundError as error:
        failure = explained(error)
        if failure is None:
            raise
        yield Finding("installation", ok=False, detail=str(failure))
        return
    for check in asyncio.run(diagnose(settings)):
        yield Finding(*check)


def _server(environ: Mapping[str, str]) -> Iterator[Finding]:
    from lucius_cli.client import connected

    try:
        with connected(environ) as api:
            yield from _health(api)
    except EnvironmentFailed as error:
        yield Finding("server", ok=False, detail=str(error))


def _health(api: "Api") -> Iterator[Finding]:
    live = api.look("/healthz/live")
    if live.status != _OK:
        yield Finding(
            "server",
            ok=False,
            detail=f"what answers at {api.url} is not LUCIUS ({live.status}): set LUCIUS_URL",
        )
        return
    yield Finding("server", ok=True, detail=f"{api.url} answers")
    ready = api.look("/healthz/ready")
    failing = [check for check in ready.body.get("checks", ()) if not check.get("ok")]
    for check in failing:
        yield Finding(f"server: {check.get('name')}", ok=False, detail=str(check.get("detail")))
    if not failing:
        ok = ready.status == _OK
        detail = "ready for work" if ok else f"not ready for work ({ready.status}): see its log"
        yield Finding("server", ok=ok, detail=detail)
