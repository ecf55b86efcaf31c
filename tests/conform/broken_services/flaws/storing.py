"""Mistakes in what is written, and where."""

import hashlib
import shutil
from pathlib import Path
from typing import Any

from tests.conform.broken_services.directives import Directive
from tests.conform.broken_services.flaws.flaw import Flaw
from tests.conform.broken_services.sound import Service
from tests.conform.broken_services.wording import SUCCEEDED, Body, Outcome


class DigestsAnotherEncoding(Service):
    """The digest is that of the text in memory, not of the bytes in the file."""

    def artifact(self, path: Path, text: str) -> dict[str, Any]:
        digest = hashlib.sha256(text.encode("utf-16")).hexdigest()
        return {**super().artifact(path, text), "sha256": digest}


class CountsCharacters(Service):
    """The size is the length of the text, which has fewer characters than bytes."""

    def artifact(self, path: Path, text: str) -> dict[str, Any]:
        return {**super().artifact(path, text), "size": len(text)}


class NamesWhatIsNotThere(Service):
    """The artifact is named as it was called before it was moved to its place."""

    def artifact(self, path: Path, text: str) -> dict[str, Any]:
        part = path.with_name(path.name + ".part")
        return {**super().artifact(path, text), "uri": part.as_uri()}


class NamesPaths(Service):
    """Artifacts are named by path instead of by URI."""

    def artifact(self, path: Path, text: str) -> dict[str, Any]:
        return {**super().artifact(path, text), "uri": str(path)}


class NamesByAnotherWay(Service):
    """The address of an artifact leads through its folder to another one, which is no one's."""

    way = ".."

    def artifact(self, path: Path, text: str) -> dict[str, Any]:
        beside = path.parent.with_name("shared")
        beside.mkdir(exist_ok=True)
        path.rename(beside / path.name)
        uri = f"{path.parent.as_uri()}/{self.way}/shared/{path.name}"
        return {**super().artifact(path, text), "uri": uri}


class NamesByAnEncodedWay(NamesByAnotherWay):
    """The same, with the dots as escapes."""

    way = "%2E%2e"


class NamesNothing(Service):
    """Who comes next is supposed to know where to look."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        body.pop("artifacts", None)
        return body


class LeavesOutTheAttempt(Service):
    """All attempts of a step write to one folder."""

    def folder(self, directive: Directive, epoch: int) -> Path:
        return super().folder(directive, epoch).parent


class NumbersFoldersByRun(Service):
    """Folders are numbered by the runs of an attempt instead of by the attempts."""

    def folder(self, directive: Directive, epoch: int) -> Path:
        return directive.workspace / directive.step_type.lower() / str(epoch)


class ClearsEarlierAttempts(Service):
    """What an earlier attempt has left is taken for rubbish."""

    def write(self, directive: Directive, folder: Path, text: str) -> dict[str, Any]:
        shutil.rmtree(directive.workspace / directive.step_type.lower(), ignore_errors=True)
        return super().write(directive, folder, text)


class LeavesPartsBeside(Service):
    """A temporary file in the folder of the job is not cleaned up."""

    def write(self, directive: Directive, folder: Path, text: str) -> dict[str, Any]:
        artifact = super().write(directive, folder, text)
        (directive.workspace / "greeting.part").write_text(text)
        return artifact


class KeepsACache(Service):
    """Inputs are cached in the storage root, which all instances share."""

    async def read_input(self, directive: Directive) -> str:
        text = await super().read_input(directive)
        (self.root / "greeting-cache.txt").write_text(text)
        return text


class NotesItsFailures(Service):
    """A failure leaves a report for people in the folder of the job."""

    async def work(self, directive: Directive, epoch: int) -> Outcome:
        outcome = await super().work(directive, epoch)
        if outcome.status != SUCCEEDED:
            directive.workspace.mkdir(parents=True, exist_ok=True)
            (directive.workspace / "failure.txt").write_text(outcome.message)
        return outcome


class ClearsOtherJobs(Service):
    """Space is made for a job by removing the folders of those before it."""

    def write(self, directive: Directive, folder: Path, text: str) -> dict[str, Any]:
        for job in directive.workspace.parent.parent.glob("*/*"):
            if job != directive.workspace:
                shutil.rmtree(job)
        return super().write(directive, folder, text)


class WritesBesideTheOutput(Service):
    """Notes are left where the last step publishes."""

    name = "notes.txt"

    def write(self, directive: Directive, folder: Path, text: str) -> dict[str, Any]:
        place = self.root / "published" / directive.job_id
        place.mkdir(parents=True, exist_ok=True)
        (place / self.name).write_text(text)
        return super().write(directive, folder, text)


class LeavesFencesBehind(Service):
    """A fence like that of `output_ref` is left for every job."""

    def write(self, directive: Directive, folder: Path, text: str) -> dict[str, Any]:
        artifact = super().write(directive, folder, text)
        (directive.workspace / ".lucius-fence").write_text(text)
        return artifact


FLAWS = (
    Flaw("LC-10", DigestsAnotherEncoding, ("artifacts",), said="artifact greeting.txt has sha256"),
    Flaw(
        "LC-10", CountsCharacters, ("artifacts",), said="artifact greeting.txt has 17 bytes, not 14"
    ),
    Flaw("LC-10", NamesWhatIsNotThere, ("artifacts",), said="artifact greeting.txt does not exist"),
    Flaw("LC-10", NamesPaths, ("artifacts",), said="which is not below"),
    Flaw("LC-10", NamesByAnotherWay, ("artifacts", "each-attempt"), said="which is not below"),
    Flaw("LC-10", NamesByAnEncodedWay, ("artifacts",), said="which is not below"),
    Flaw("LC-10", NamesNothing, ("artifacts",), said="SUCCEEDED names no artifacts"),
    Flaw("LC-10", LeavesOutTheAttempt, ("artifacts",), said="which is not below"),
    Flaw("LC-10", NumbersFoldersByRun, ("each-attempt",), said="which is not below"),
    Flaw(
        "LC-10",
        ClearsEarlierAttempts,
        ("each-attempt",),
        said="attempt 2 changed what attempt 1 had written",
    ),
    Flaw("LC-11", LeavesPartsBeside, said="written outside of its folder: lucius/"),
    Flaw("LC-11", KeepsACache, said="written outside of its folder: greeting-cache.txt"),
    Flaw("LC-11", NotesItsFailures, said="written outside of its folder: lucius/"),
    Flaw("LC-11", ClearsOtherJobs, said="removed: lucius/"),
    Flaw("LC-11", WritesBesideTheOutput, said="written outside of its folder: published/"),
    Flaw("LC-11", LeavesFencesBehind, said="written outside of its folder: lucius/"),
)
