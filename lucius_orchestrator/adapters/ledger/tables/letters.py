"""Dead letters. A letter lies in the partition of its job; the index leads to it by time.

A commit announces its letters as it does all else. A letter that no commit writes has no version to
build on, so it is written first and its index row second; who buries it and dies in between owes
another try, which finds the letter and writes the row.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from typing import NamedTuple

from lucius_orchestrator.adapters.ledger import cursors
from lucius_orchestrator.adapters.ledger.tables import keys
from lucius_orchestrator.adapters.ledger.tables.indexes import (
    LETTERS,
    Intent,
    letter_partition,
    letter_place,
    letter_values,
)
from lucius_orchestrator.adapters.ledger.tables.partition import (
    JOBS,
    LETTER_ROWS,
    RACES,
    IndexRow,
    Place,
    letter_key,
)
from lucius_orchestrator.adapters.ledger.tables.store import (
    BATCH_LIMIT,
    EntityExists,
    EtagMismatch,
    Insert,
    Merge,
    Operation,
    Row,
    Tables,
)
from lucius_orchestrator.ports.ledger import (
    DeadLetterQuery,
    DeadLetterRow,
    LedgerUnavailable,
    Page,
)

EXAMINED = 1000
"""How many rows of an index one page may cost, whatever of them matches."""

_PAGE = 100


class LetterWrites(NamedTuple):
    """What a commit writes of its letters: in the job's partition, and before it to the index."""

    operations: list[Operation]
    announced: list[IndexRow]


class Letters:
    def __init__(
        self, tables: Tables, *, clock: Callable[[], datetime], new_token: Callable[[], str]
    ) -> None:
        self._tables = tables
        self._clock = clock
        self._new_token = new_token

    async def writes(self, letters: Iterable[DeadLetterRow], intent: Intent) -> LetterWrites:
        writes = LetterWrites([], [])
        for letter in letters:
            row = await self._get(letter.job_id, letter.id)
            if row is not None:
                writes.operations.append(_again(row, letter))
                continue
            index = intent.letter(letter)
            writes.operations.append(_new(letter, index.place))
            writes.announced.append(index)
        return writes

    async def bury(self, letter: DeadLetterRow) -> bool:
        for _ in range(RACES):
            row = await self._get(letter.job_id, letter.id)
            place = row.values["index"] if row else letter_place(letter, self._new_token())
            write = _again(row, letter) if row else _new(letter, place)
            with suppress(EntityExists, EtagMismatch):
                await self._tables.batch(JOBS, letter_partition(letter.job_id, letter.id), [write])
                await self._index(letter, place)
                return row is None
        raise LedgerUnavailable(f"the dead letter {letter.id} is written too often")

    async def mark_redriven(self, job_id: str, by: str) -> int:
        marked, (first, end) = 0, LETTER_ROWS
        while True:
            rows = await self._tables.query(JOBS, keys.part(job_id), first, end, BATCH_LIMIT)
            with suppress(EtagMismatch):
                marked += await self._mark(job_id, rows, by)
                if len(rows) < BATCH_LIMIT:
                    return marked
                first = rows[-1].key + "!"

    async def page(self, query: DeadLetterQuery) -> Page[DeadLetterRow]:
        found: list[DeadLetterRow] = []
        after = _behind(query.cursor)
        for _ in range(EXAMINED // _PAGE):
            rows = await self._tables.scan(LETTERS, after, keys.END, _PAGE)
            for row in rows:
                after = (row.partition, row.key)
                letter = await self._read(row, query)
                if letter is not None:
                    found.append(letter)
                if len(found) == query.limit:
                    return Page(tuple(found), _cursor(row))
            if len(rows) < _PAGE:
                return Page(tuple(found), None)
        return Page(tuple(found), _cursor(row))

    async def _read(self, index: Row, query: DeadLetterQuery) -> DeadLetterRow | None:
        """The letter where it lies, if the index row speaks of it and it is asked for."""
        values = index.values
        asked = {"tenant_id": query.tenant_id, "kind": query.kind, "code": query.code}
        if any(want is not None and values[name] != want for name, want in asked.items()):
            return None
        row = await self._get(values["job_id"], values["letter_id"])
        if row is None or row.values["index"] != Place(LETTERS, index.partition, index.key):
            return None
        letter: DeadLetterRow = row.values["letter"]
        return letter

    async def _get(self, job_id: str | None, letter_id: str) -> Row | None:
        partition = letter_partition(job_id, letter_id)
        return await self._tables.get(JOBS, partition, letter_key(letter_id))

    async def _index(self, letter: DeadLetterRow, place: Place) -> None:
        values = letter_values(letter, None, self._clock())
        with suppress(EntityExists):
            await self._tables.batch(place.table, place.partition, [Insert(place.row, values)])

    async def _mark(self, job_id: str, rows: Iterable[Row], by: str) -> int:
        marks = [
            Merge(row.key, {"letter": row.values["letter"]._replace(redriven_by=by)}, row.etag)
            for row in rows
            if row.values["letter"].redriven_by is None
        ]
        if marks:
            await self._tables.batch(JOBS, keys.part(job_id), marks)
        return len(marks)


def _new(letter: DeadLetterRow, index: Place) -> Insert:
    return Insert(letter_key(letter.id), {"letter": letter, "index": index})


def _again(row: Row, letter: DeadLetterRow) -> Merge:
    """Of a letter that is there, only the last time moves."""
    kept: DeadLetterRow = row.values["letter"]
    last_at = max(kept.last_at, letter.last_at)
    return Merge(row.key, {"letter": kept._replace(last_at=last_at)}, row.etag)


def _behind(cursor: str | None) -> tuple[str, str]:
    """Behind all index rows of the letter that the cursor names, whatever their token."""
    last = cursors.decode_letter(cursor)
    if last is None:
        return "", ""
    first_at, letter_id = last
    beyond = keys.below(keys.moment_descending(first_at), letter_id)[1]
    return keys.month_descending(first_at), beyond


def _cursor(row: Row) -> str:
    return cursors.encode_letter(row.values["first_at"], row.values["letter_id"])
