"""`lucius doctor`: what is reachable and what is not, with the next thing to do."""

import asyncio
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import typer

from lucius_cli.failures import EnvironmentFailed, ExitCode, explained
from lucius_cli.output import JsonFlag, Table, print_json, print_table, say

if TYPE_CHECKING:
    from lucius_cli.client import Api
    from lucius_sdk.settings import ServiceSettings

_OK = 200
_TOLD = frozenset({"temporal"})
"""What a server is ready without, but not all of its jobs."""
_OF_A_SERVICE = frozenset(
    {
        "LUCIUS_SERVICE",
        "LUCIUS_DEDUP_STORE",
        "LUCIUS_BLOB_CONNECTION",
        "LUCIUS_BLOB_ENDPOINT",
        "LUCIUS_INPUT_ROOTS",
        "LUCIUS_OUTPUT_ROOTS",
        "LUCIUS_S3_ENDPOINT",
    }
)


class Finding(NamedTuple):
    name: str
    ok: bool
    detail: str

    def masked(self) -> "Finding":
        from lucius_outbox.redaction import without_url_credentials

        return self._replace(detail=without_url_credentials(self.detail))


def doctor(as_json: JsonFlag = False) -> None:
    """Say what works, what does not, and what to do next."""
    found = [*_here(os.environ), *_places_of_a_service(os.environ), *_server(os.environ)]
    findings = [finding.masked() for finding in found]
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


def _places_of_a_service(environ: Mapping[str, str]) -> Iterator[Finding]:
    """What the variables of a service name, where one is set: its workspace and its dedup store."""
    if not _OF_A_SERVICE & environ.keys():
        return
    from lucius_cli.environment import problem_lines
    from lucius_sdk.settings import SettingsError, load_settings

    try:
        settings = load_settings(environ)
    except SettingsError as error:
        for line in problem_lines(error):
            yield Finding("service", ok=False, detail=line)
        return
    yield _looked_at("workspace", settings.workspace_root, lambda: _look_at_workspace(settings))
    place = settings.dedup_store.reveal().partition(":")[0]
    yield _looked_at("dedup store", place, lambda: asyncio.run(_look_at_store(settings)))
    yield from _mode_of_store(settings.dedup_store.reveal())


def _mode_of_store(url: str) -> Iterator[Finding]:
    from lucius_orchestrator.security.private_files import open_to_others
    from lucius_sdk.idempotency_store.opening import sqlite_path

    path = sqlite_path(url)
    if path is not None and open_to_others([path]) and open_to_others([path.absolute().parent]):
        advice = f"warning: other users may read {path}: `chmod go= {path}*` closes it"
        yield Finding("dedup store file", ok=True, detail=advice)


def _looked_at(name: str, place: str, look: Callable[[], None]) -> Finding:
    from lucius_sdk.error_model import StepError
    from lucius_sdk.idempotency_store import StoreError

    try:
        look()
    except (StepError, StoreError, ValueError) as error:
        return Finding(name, ok=False, detail=f"{place}: {error}")
    return Finding(name, ok=True, detail=f"{place} can be used")


def _look_at_workspace(settings: "ServiceSettings") -> None:
    from lucius_sdk.workspace_io import open_storages

    storages = open_storages(
        settings.workspace_root,
        settings.input_roots,
        settings.blobs,
        output_roots=settings.output_roots,
        s3_endpoint=settings.s3_endpoint,
        system=settings.system,
    )
    try:
        storages.check()
    finally:
        storages.close()


async def _look_at_store(settings: "ServiceSettings") -> None:
    from lucius_sdk.idempotency_store.opening import open_store

    store = open_store(settings.dedup_store.reveal(), tables=settings.tables, blobs=settings.blobs)
    try:
        await store.check()
    finally:
        await store.close()


def _server(environ: Mapping[str, str]) -> Iterator[Finding]:
    from lucius_cli.client import connected

    try:
        with connected(environ) as api:
            yield from _health(api)
    except EnvironmentFailed as error:
        yield Finding("server", ok=False, detail=str(error))


def _absent(api: "Api") -> Iterator[Finding]:
    """Services that work waits for and that nothing is heard from. A key that may not see them is
    no reason to complain."""
    for item in api.look("/v1/services").body.get("items", ()):
        waiting = item["waiting"] + item["unacknowledged"]
        if item["presence"] == "ABSENT" and waiting:
            advice = (
                f"warning: nothing is heard from it, and {waiting} directives wait for it: start"
                " it, or see in its log whether it reaches the bus; its jobs then go on by"
                " themselves"
            )
            yield Finding(f"service {item['service']}", ok=True, detail=advice)


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
    checks = ready.body.get("checks", ())
    for check in checks:
        name, ok = check.get("name"), bool(check.get("ok"))
        if not ok or name in _TOLD:
            detail = check.get("detail") or (
                "ok"
                if ok
                else "not ready; its log says why, and a key with the role operate and"
                " all tenants is told here (LUCIUS_API_KEY)"
            )
            yield Finding(f"server: {name}", ok, str(detail))
    if all(check.get("ok") for check in checks):
        ok = ready.status == _OK
        detail = "ready for work" if ok else f"not ready for work ({ready.status}): see its log"
        yield Finding("server", ok=ok, detail=detail)
    yield from _absent(api)
