"""LC-10 and LC-11: what is written, and where."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from contract_tests.bench import Bench, Sent
from contract_tests.scenarios.scenario import Scenario
from contract_tests.verdicts import RuleBroken
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import Entry

FENCE_PREFIX = ".lucius-"
"""A storage without conditional writes keeps the fence of `output_ref` in a file beside it."""


def own_folder(bench: Bench, sent: Sent) -> Path:
    job = bench.mock.workspace_of(sent.job_id, sent.order.tenant_id)
    return job / bench.contract.step_type.lower() / str(sent.issued.attempt_no)


async def artifacts(bench: Bench, via: ReplyVia) -> None:
    """What the RESULT names is looked for in the workspace, measured and hashed."""
    sent = bench.send(via)
    result = await sent.succeeded()
    _check_artifacts(bench, sent, result)


async def artifacts_of_each_attempt(bench: Bench, via: ReplyVia) -> None:
    """A second attempt writes to its own folder and leaves alone what the first has written."""
    first = await bench.given_up(via)
    left = _files(own_folder(bench, first))
    second = bench.next_attempt(first)
    _check_artifacts(bench, second, await second.succeeded())
    if _files(own_folder(bench, first)) != left:
        raise RuleBroken("attempt 2 changed what attempt 1 had written")


def _check_artifacts(bench: Bench, sent: Sent, result: Entry) -> None:
    named = (result.body or {}).get("artifacts") or []
    if not named:
        raise RuleBroken(
            "SUCCEEDED names no artifacts", "If it never writes any, say `artifacts: false`."
        )
    for artifact in named:
        _check_artifact(artifact, own_folder(bench, sent))


def _check_artifact(artifact: Mapping[str, Any], folder: Path) -> None:
    name, uri = artifact.get("name"), str(artifact.get("uri"))
    parts = urlsplit(uri)
    path = Path(unquote(parts.path))
    if parts.scheme != "file" or folder not in path.parents or ".." in path.parts:
        raise RuleBroken(f"artifact {name} is at {uri}, which is not below {folder.as_uri()}/")
    if not path.is_file():
        raise RuleBroken(f"artifact {name} does not exist: {uri}")
    content = path.read_bytes()
    if artifact.get("size") != len(content):
        raise RuleBroken(f"artifact {name} has {len(content)} bytes, not {artifact.get('size')}")
    found = hashlib.sha256(content).hexdigest()
    if artifact.get("sha256") != found:
        raise RuleBroken(f"artifact {name} has sha256 {found}, not {artifact.get('sha256')}")


async def nothing_elsewhere(bench: Bench, via: ReplyVia) -> None:
    """All files of the storage root are listed before and after two directives: one that succeeds
    and one that is refused."""
    before = _files(bench.workspace)
    sent = bench.send(via)
    await sent.succeeded()
    refused = bench.send(via, sample=bench.contract.invalid)
    await refused.result()
    await refused.settled()
    await sent.settled()
    changed = {path for path, seen in _files(bench.workspace).items() if before.get(path) != seen}
    gone = before.keys() - _files(bench.workspace).keys()
    allowed = [own_folder(bench, each) for each in (sent, refused)]
    outputs = [bench.mock.output_of(each.job_id) for each in (sent, refused)]
    strange = [p for p in changed if not _is_allowed(p, allowed, outputs)]
    if strange or gone:
        shown = ", ".join(str(path.relative_to(bench.workspace)) for path in sorted(strange)[:5])
        lost = ", ".join(str(path.relative_to(bench.workspace)) for path in sorted(gone)[:5])
        raise RuleBroken(
            f"written outside of its folder: {shown}" if strange else f"removed: {lost}"
        )


def _is_allowed(path: Path, folders: list[Path], outputs: list[Path]) -> bool:
    if any(folder in path.parents for folder in folders):
        return True
    return any(
        path == output or (path.parent == output.parent and path.name.startswith(FENCE_PREFIX))
        for output in outputs
    )


@contextmanager
def taken_away(bench: Bench) -> Iterator[None]:
    """A file is in the place of the storage root: nothing can be created there."""
    place = bench.workspace
    aside = place.with_name("workspace-away")
    place.rename(aside)
    place.touch()
    bench.note("the storage is taken away")
    try:
        yield
    finally:
        place.unlink()
        aside.rename(place)
        bench.note("the storage is back")


def _files(root: Path) -> dict[Path, tuple[int, int]]:
    """Every file, with what tells that it was changed."""
    found = {}
    for path in root.rglob("*"):
        if path.is_file():
            facts = path.stat()
            found[path] = (facts.st_size, facts.st_mtime_ns)
    return found


SCENARIOS = (
    Scenario("LC-10", "artifacts", artifacts),
    Scenario("LC-10", "each-attempt", artifacts_of_each_attempt),
    Scenario("LC-11", "nothing-elsewhere", nothing_elsewhere),
)
