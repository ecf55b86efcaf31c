"""The store on Azure Table Storage: shared by the processes of many machines."""

import random
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from http import HTTPStatus
from itertools import chain
from typing import Any
from uuid import uuid4

from azure.data.tables import TableEntity, TableTransactionError

from lucius_azure.storage import StorageAccount, open_tables
from lucius_sdk.idempotency_store.azure_calls import (
    PATIENCE,
    Calls,
    Chance,
    Refused,
    Verb,
    together,
)
from lucius_sdk.idempotency_store.azure_layout import (
    Place,
    conflict,
    lapse_of,
    moment,
    place_of,
    read_spelled,
)
from lucius_sdk.idempotency_store.azure_rows import (
    CHECK,
    PARTITIONS,
    Operation,
    Row,
    Version,
    etag_of,
    lapsed_query,
    old_query,
    read_record,
    record_row,
    removal_operations,
    write_operations,
)
from lucius_sdk.idempotency_store.errors import StoreError
from lucius_sdk.idempotency_store.port import Stored, system_now
from lucius_sdk.idempotency_store.records import RETENTION, Record, StepKey

_PAGE = 1000
_PURGED_AT_ONCE = 50  # with a row of the index for each, as many as a transaction can have


class AzureTableStore:
    """A record is a row in one of sixteen partitions. A result that waits to be reported has a
    second row beside it, by the moment at which it lapses, which comes and goes in the same
    transaction: that index is never wrong. So every write is one call.

    How old a record is, is by the clock of the service. What nobody has touched for `retention` is
    purged, a bucket at a time, as new ones come.
    """

    def __init__(
        self,
        account: StorageAccount,
        table: str,
        retention: timedelta = RETENTION,
        *,
        now: Callable[[], datetime] = system_now,
        patience: timedelta = PATIENCE,
        chance: Chance = random.random,
    ) -> None:
        opened = open_tables(account, retry_total=0)
        self._table = opened.client.get_table_client(table)
        self._calls = Calls(opened, "Azure Tables", patience, chance)
        self._retention = retention
        self._now = now
        self._is_proved = False

    async def read(self, key: StepKey) -> Stored | None:
        async with self._calls.verb() as verb:
            row = await self._row(verb, record_row(place_of(key)))
        if row is None:
            return None
        record = read_record(row)
        return Stored(record, str(Version(etag_of(row), lapse_of(record))))

    async def write(self, key: StepKey, record: Record, expected: str | None) -> str:
        place, token = place_of(key), uuid4().hex
        before = None if expected is None else Version(*expected.split("|"))
        operations = [*write_operations(key, place, record, token, before)]
        async with self._calls.verb() as verb:
            try:
                etag = await self._sent(verb, operations, is_new=before is None)
            except Refused:
                if (found := await self._own(verb, place, token)) is None:
                    raise conflict(key) from None
                etag = found
        self._calls.written(partial(self._purge, place.bucket))
        return str(Version(etag, lapse_of(record)))

    async def lapsed_results(self, before: datetime, limit: int) -> list[StepKey]:
        """A query of each partition."""
        async with self._calls.verb() as verb:
            queries = [lapsed_query(each, moment(before)) for each in PARTITIONS]
            try:
                found = await together(verb.ask(partial(self._found, q, limit)) for q in queries)
            except Refused:
                return []  # there is no table yet
        oldest = sorted(chain.from_iterable(found), key=lambda row: str(row["RowKey"]))
        return [StepKey(*read_spelled(row["step"], 2)) for row in oldest[:limit]]

    async def check(self) -> None:
        """At first with a deletion and a write, so that who may only read is told at once."""
        async with self._calls.verb() as verb:
            if self._is_proved and await self._row(verb, CHECK) is not None:
                return
            await verb.ask(partial(self._delete, CHECK))
            with suppress(Refused):  # another process is doing the same
                await self._sent(verb, [("create", CHECK)], is_new=True)
            self._is_proved = True

    async def close(self) -> None:
        await self._calls.close()

    async def _row(self, verb: Verb, keys: Row) -> TableEntity | None:
        try:
            return await verb.ask(
                lambda: self._table.get_entity(keys["PartitionKey"], keys["RowKey"])
            )
        except Refused:
            return None

    async def _own(self, verb: Verb, place: Place, token: str) -> str | None:
        """The ETag of what is stored, if that is our write."""
        row = await self._row(verb, record_row(place))
        return etag_of(row) if row is not None and row.get("token") == token else None

    async def _sent(self, verb: Verb, operations: Sequence[Operation], *, is_new: bool) -> str:
        """The ETag of the first row. The table is made if it is missing."""
        try:
            return await verb.ask(partial(self._send, operations))
        except Refused as refused:
            if not (is_new and refused.is_absent):
                raise
        await verb.make(self._table.create_table, f"the table {self._table.table_name}")
        return await verb.ask(partial(self._send, operations))

    async def _send(self, operations: Sequence[Operation]) -> str:
        if len(operations) == 1:
            return await self._send_alone(*operations[0])
        try:
            answers = await self._table.submit_transaction(operations)
        except TableTransactionError as error:
            is_last = error.index == len(operations) - 1
            if not is_last or error.status_code != HTTPStatus.NOT_FOUND:
                raise
            # The row of the index that was to be removed: a foreign hand was faster.
            return await self._send(operations[:-1])
        return str(answers[0].get("etag"))

    async def _send_alone(self, verb: str, row: Any, options: Any = None) -> str:
        if verb == "create":
            return str((await self._table.create_entity(row))["etag"])
        return str((await self._table.update_entity(row, **options))["etag"])

    async def _delete(self, keys: Row) -> None:
        await self._table.delete_entity(keys["PartitionKey"], keys["RowKey"])

    async def _found(self, query: str, limit: int) -> list[TableEntity]:
        columns = ["PartitionKey", "RowKey", "Timestamp", "step", "lapse"]
        size = min(limit, _PAGE)
        found: list[TableEntity] = []
        async for row in self._table.query_entities(query, results_per_page=size, select=columns):
            found.append(row)
            if len(found) == limit:
                break
        return found

    async def _purge(self, bucket: str) -> None:
        before = (self._now() - self._retention).astimezone(UTC)
        query = old_query(bucket, f"{before:%Y-%m-%dT%H:%M:%S.%fZ}")
        with suppress(StoreError, Refused):  # nobody waits for it; a later write tries again
            async with self._calls.verb() as verb:
                old = await verb.ask(partial(self._found, query, _PAGE))
            for start in range(0, len(old), _PURGED_AT_ONCE):
                async with self._calls.verb() as verb:
                    await self._remove(verb, old[start : start + _PURGED_AT_ONCE])

    async def _remove(self, verb: Verb, rows: Sequence[TableEntity]) -> None:
        """All together, or each by itself where one was written meanwhile."""
        operations = [each for row in rows for each in removal_operations(row)]
        try:
            await verb.ask(lambda: self._table.submit_transaction(operations))
        except Refused:
            if len(rows) > 1:
                for row in rows:
                    await self._remove(verb, [row])
