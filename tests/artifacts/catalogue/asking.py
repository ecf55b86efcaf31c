"""Short ways to write rows, to read them, and to bring transactions together."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from typing import Any, TypeVar, cast

from lucius_artifacts.model import (
    AuditRecord,
    Blob,
    Claim,
    Doomed,
    Entry,
    Hold,
    Run,
    Upload,
    Version,
)
from lucius_artifacts.ports.catalogue import Catalogue, Reader, Transaction
from lucius_outbox.message import Message
from tests.artifacts import rows
from tests.artifacts.catalogue.backends import NAMESPACE, Backend
from tests.runner.deadlines import DEADLINE

T = TypeVar("T")
MANY = 1000
_PUTS: dict[type, str] = {
    Upload: "put_upload",
    Blob: "put_blob",
    Claim: "put_claim",
    Version: "put_version",
    Hold: "put_hold",
    Doomed: "put_doomed",
    Run: "put_run",
    AuditRecord: "record",
    Message: "emit",
}


def digest(content: object) -> str:
    return sha256(str(content).encode()).hexdigest()


def digests(count: int) -> list[str]:
    """In their order."""
    return sorted(digest(number) for number in range(count))


def blob(content_digest: str, **changes: Any) -> Blob:
    changes.setdefault("object_key", f"ob_{content_digest}")
    return rows.blob(**changes, digest=content_digest)


def version_of(*content_digests: str, **changes: Any) -> Version:
    """A version whose entries are of these digests."""
    entries = tuple(Entry(f"{n:04}.txt", each, n) for n, each in enumerate(content_digests))
    return rows.version(**changes, entries=entries)


def message(topic: str = "happened", key: str | None = None, payload: Any = None) -> Message:
    return Message(NAMESPACE, topic, payload, dedupe_key=key)


class _Verbs:
    def __init__(self, run: Callable[[Any], Awaitable[Any]]) -> None:
        self._run = run

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        return lambda *values: self._run(lambda given: getattr(given, verb)(*values))


def ask(catalogue: Catalogue) -> Reader:
    """Each verb in a read of its own."""
    return cast(Reader, _Verbs(catalogue.read))


def do(catalogue: Catalogue) -> Transaction:
    """Each verb in a change of its own."""
    return cast(Transaction, _Verbs(catalogue.change))


async def put_in(transaction: Transaction, *written: Any) -> None:
    for row in written:
        await getattr(transaction, _PUTS[type(row)])(row)


async def put(catalogue: Catalogue, *written: Any) -> None:
    """In one change, in this order."""
    await catalogue.change(lambda transaction: put_in(transaction, *written))


async def paged(
    size: int,
    page: Callable[[str | None, int], Awaitable[Sequence[T]]],
    cursor: Callable[[T], str],
) -> list[T]:
    """All rows, page after page of this size."""
    found: list[T] = []
    after = None
    while rows_of_page := await page(after, size):
        assert len(rows_of_page) <= size
        found += rows_of_page
        after = cursor(rows_of_page[-1])
    return found


class Meeting:
    """Where two transactions wait for each other, so that both have read before either writes.
    Where one must wait for the other's end they do not meet."""

    def __init__(self, backend: Backend) -> None:
        self._deadline = DEADLINE if backend.side_by_side else 0.03
        self._must_meet = backend.side_by_side
        self._both = asyncio.Barrier(2)
        self._met = asyncio.Event()

    async def __call__(self) -> None:
        """The first time; who is run again goes on at once."""
        if self._met.is_set():
            return
        try:
            async with asyncio.timeout(self._deadline):
                await self._both.wait()
        except (TimeoutError, asyncio.BrokenBarrierError):
            assert not self._must_meet, "the two did not meet"
        self._met.set()
