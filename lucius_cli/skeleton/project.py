"""The files of a project: read as they are, replaced whole.

A project is cloned from a repository that may be anybody's, and so is its record of what was baked.
No path in it leads out of the project's folder, through a symbolic link or into what git keeps.
"""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from lucius_cli.failures import EnvironmentFailed, Unsuitable


class Project:
    """`folder` need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    def read(self, path: str) -> str | None:
        """With plain line ends; bytes that are no UTF-8 survive a `put`. None: it is not there."""
        place = self._place(path)
        try:
            content = place.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise EnvironmentFailed(f"{place} cannot be read: {error.strerror}") from error
        if _has_crlf(content):
            content = content.replace(b"\r\n", b"\n")
        return content.decode(errors="surrogateescape")

    def is_odd(self, path: str) -> bool:
        """Whether something is there that is no regular file. `read` and `put` refuse a link."""
        place = self._within(path)
        return place.is_symlink() or (place.exists() and not place.is_file())

    def put(self, path: str, text: str | None) -> None:
        """Whole or not at all; None removes it. `Unsuitable` if a symbolic link is in the way."""
        place = self._place(path)
        try:
            if text is None:
                self._remove(place)
            else:
                _replace(place, text.encode(errors="surrogateescape"))
        except OSError as error:
            raise EnvironmentFailed(f"{place} cannot be written: {error.strerror}") from error

    def uncommitted(self, paths: Iterable[str]) -> list[str]:
        """Those that git would lose a version of; none where there is no git."""
        try:
            run = subprocess.run(  # noqa: S603
                [*_GIT_STATUS, "--", *paths], cwd=self.folder, capture_output=True, check=False
            )
        except FileNotFoundError:
            return []
        return [entry[3:].decode(errors="replace") for entry in run.stdout.split(b"\0") if entry]

    def _remove(self, place: Path) -> None:
        """And the folders that are empty without it."""
        place.unlink()
        for parent in place.parents:
            if parent == self.folder or any(parent.iterdir()):
                return
            parent.rmdir()

    def _place(self, path: str) -> Path:
        place = self._within(path)
        _refuse_link(place, path)
        return place

    def _within(self, path: str) -> Path:
        """Where the path leads, if no folder on the way is a link."""
        parts = PurePosixPath(path).parts
        if not parts or parts[0] == "/" or ".." in parts:
            raise Unsuitable(f"{path} leads out of {self.folder}: nothing is changed there")
        if any(part.lower() == ".git" for part in parts):
            raise Unsuitable(f"{path} belongs to git: nothing is changed there")
        place = self.folder
        for part in parts[:-1]:
            place /= part
            _refuse_link(place, path)
        return place / parts[-1]


# What is committed below a folder cannot name a program for git to run.
_GIT_STATUS = (
    *("git", "-c", "core.fsmonitor=false", "-c", "safe.bareRepository=explicit"),
    *("--literal-pathspecs", "status", "--porcelain", "-z", "--no-renames"),
    "--untracked-files=all",
)


def _refuse_link(place: Path, path: str) -> None:
    if place.is_symlink():
        raise Unsuitable(
            f"{path} leads through {place}, which is a symbolic link: nothing is changed there;"
            " replace the link by what it should lead to"
        )


def _has_crlf(content: bytes) -> bool:
    return 0 < content.count(b"\n") == content.count(b"\r\n")


def _replace(place: Path, content: bytes) -> None:
    """The file keeps its mode, and its kind of line ends."""
    if place.is_file() and _has_crlf(place.read_bytes()):
        content = content.replace(b"\n", b"\r\n")
    place.parent.mkdir(parents=True, exist_ok=True)
    beside = place.with_name(f".{place.name}.new")
    try:
        _fill(beside, content)
        if place.exists():
            beside.chmod(place.stat().st_mode & 0o7777)
        beside.replace(place)
    finally:
        beside.unlink(missing_ok=True)


def _fill(file: Path, content: bytes) -> None:
    """A new file: what is there, of an update that was interrupted or a link that waits, goes."""
    file.unlink(missing_ok=True)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    with open(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
