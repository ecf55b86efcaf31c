"""The files of a project: read as they are, replaced whole."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

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
        """Whether something is there that is no regular file."""
        place = self._place(path)
        return place.is_symlink() or (place.exists() and not place.is_file())

    def put(self, path: str, text: str | None) -> None:
        """Whole or not at all; None removes it."""
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
        command = ["git", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=all"]
        try:
            run = subprocess.run(  # noqa: S603
                [*command, "--", *paths], cwd=self.folder, capture_output=True, check=False
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
        """Paths come from a record, and folders from a repository, that may be anybody's."""
        place = self.folder / path
        if not place.parent.resolve().is_relative_to(self.folder):
            raise Unsuitable(f"{path} leads out of {self.folder}: nothing is changed there")
        return place


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
    with file.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
