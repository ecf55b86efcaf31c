"""What an upload leaves behind so that another process can go on with it: one small file, with no
secret in it."""

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from lucius_artifacts.client.sources import Stamp

_FOLDER = "lucius/uploads"


@dataclass(frozen=True, slots=True)
class Remembered:
    """A session, and the file that it is for as that was when the session began."""

    upload_id: str
    path: str
    size: int
    modified: int
    digest: str

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.size, self.modified)


class ResumeFile:
    """Where it cannot be written, uploads work all the same and cannot be resumed."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def is_there(self) -> bool:
        return self.path.is_file()

    def read(self) -> Remembered | None:
        """None, too, for what is not ours."""
        try:
            return Remembered(**json.loads(self.path.read_bytes()))
        except (OSError, TypeError, ValueError):
            return None

    def write(self, remembered: Remembered) -> None:
        """At once and wholly: a kill leaves the old one or the new one."""
        with suppress(OSError):
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, unfinished = tempfile.mkstemp(dir=self.path.parent, prefix=".new-")
            with open(descriptor, "w", encoding="utf-8") as file:
                json.dump(asdict(remembered), file)
            os.replace(unfinished, self.path)

    def forget(self) -> None:
        with suppress(OSError):
            self.path.unlink()


def resume_file(folder: Path, url: str, tenant_id: str | None, path: Path) -> ResumeFile:
    """The same for the same file, tenant and server."""
    whose = json.dumps([url, tenant_id, str(path.resolve())])
    return ResumeFile(folder / f"{sha256(whose.encode()).hexdigest()[:32]}.json")


def state_folder(environ: Mapping[str, str]) -> Path:
    """As the XDG base directories have it; in this folder for a user without a home."""
    state = environ.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):
        return Path(state, _FOLDER)
    try:
        return Path.home() / ".local" / "state" / _FOLDER
    except RuntimeError:
        return Path(".lucius") / _FOLDER
