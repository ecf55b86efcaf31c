"""Numbered, forward-only migrations: files `NNNN_name.sql` beside each adapter."""

from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from lucius_outbox.errors import SchemaMismatch


class Migration(NamedTuple):
    version: int
    name: str
    sql: str


def migrations(package: str) -> tuple[Migration, ...]:
    found = sorted(
        Migration(int(file.name[:4]), file.name[5:].removesuffix(".sql"), file.read_text("utf-8"))
        for file in (files(package) / "migrations").iterdir()
        if file.name.endswith(".sql")
    )
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise RuntimeError(f"migrations of {package} are not numbered 1, 2, 3, ...")
    return tuple(found)


def missing(prefix: str, known: Sequence[Migration], version: int) -> Sequence[Migration]:
    """What is still to be applied; SchemaMismatch if a newer release made the schema."""
    if version > len(known):
        raise SchemaMismatch(version, len(known), prefix)
    return known[version:]


def require_current(prefix: str, known: Sequence[Migration], version: int) -> None:
    if version != len(known):
        raise SchemaMismatch(version, len(known), prefix)
