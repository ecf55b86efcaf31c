"""Which files there are, and their bytes. Their meaning is read elsewhere."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

SHIPPED = Path(__file__).parents[2] / "shipped"
DEFAULTS_FILE = "defaults.yaml"
TENANTS_FILE = "tenants.yaml"
PROTOCOLS_FOLDER = "protocols"


class Unreadable(NamedTuple):
    """A file or folder of which nothing can be said but why it could not be read."""

    reason: str


Files = Mapping[str, bytes | Unreadable]
"""By the name that people know a file by: relative to the folder."""


class Sources(NamedTuple):
    """Equal sources mean the same; `own_protocols` tells that none of the shipped ones count."""

    files: Files
    own_protocols: bool


def read_sources(folder: Path | None, own_protocols: bool) -> Sources:
    """Read what the folder has, and the shipped file for what it does not have.

    A folder that had protocols of its own does not go back to the shipped ones: when they are gone,
    something is wrong.
    """
    if folder is None:
        return Sources(dict(_files(SHIPPED, SHIPPED)), False)
    if not folder.is_dir():
        return Sources({str(folder): Unreadable("is not a folder")}, own_protocols)
    own_protocols = own_protocols or (folder / PROTOCOLS_FOLDER).exists()
    return Sources(dict(_files(folder, folder if own_protocols else SHIPPED)), own_protocols)


def _files(folder: Path, of_protocols: Path) -> Iterator[tuple[str, bytes | Unreadable]]:
    for name in (DEFAULTS_FILE, TENANTS_FILE):
        path = folder / name
        misnamed = path.with_suffix(".yml")
        if misnamed.exists():
            yield misnamed.name, _misnamed(misnamed)
        yield name, _read(path if path.exists() else SHIPPED / name)
    yield from _protocol_files(of_protocols / PROTOCOLS_FOLDER)


def _protocol_files(folder: Path) -> Iterator[tuple[str, bytes | Unreadable]]:
    """Hidden files are what editors leave behind."""
    try:
        paths = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    except OSError as error:
        yield PROTOCOLS_FOLDER, Unreadable(_reason(error))
        return
    for path in paths:
        if path.suffix == ".yml":
            yield f"{PROTOCOLS_FOLDER}/{path.name}", _misnamed(path)
        if path.suffix == ".yaml":
            yield f"{PROTOCOLS_FOLDER}/{path.name}", _read(path)
    if not any(path.suffix == ".yaml" for path in paths):
        yield PROTOCOLS_FOLDER, Unreadable("holds no *.yaml file")


def _misnamed(path: Path) -> Unreadable:
    return Unreadable(f"is not read under this name; call it {path.with_suffix('.yaml').name}")


def _read(path: Path) -> bytes | Unreadable:
    try:
        return path.read_bytes()
    except OSError as error:
        return Unreadable(_reason(error))


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror}"
