"""The calls: what `tables.store.Tables` asks, of the tables of a storage account.

A call that the service throttles or fails for the moment is made again within `patience`, after
what Retry-After says or a growing pause. Also one whose answer was lost: the ledger knows its own
writes again. A batch of one row is a plain request, which is cheaper; deleted alone, a row that is
not there is nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar

from azure.core import MatchConditions
from azure.core.exceptions import ResourceExistsError, ResourceNotFoundError
from azure.data.tables import TableEntity, UpdateMode
from azure.data.tables.aio import TableClient, TableServiceClient
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_before_delay
from tenacity.wait import wait_random_exponential

from lucius_azure.faults import asked_to_wait, is_forbidden, is_passing
from lucius_azure.storage import AsyncOpened
from lucius_orchestrator.adapters.ledger.azure_tables.faults import (
    FAULTS,
    condition,
    is_of_the_table,
    unavailable,
)
from lucius_orchestrator.adapters.ledger.azure_tables.properties import (
    ENTITY_LIMIT,
    size_of,
    to_properties,
    to_values,
)
from lucius_orchestrator.adapters.ledger.tables.store import (
    Delete,
    Insert,
    Merge,
    Operation,
    Row,
    StoreUnavailable,
    check_batch,
)
from lucius_orchestrator.ports.ledger import TooLarge

_PATIENCE = timedelta(seconds=15)
_PAGE = 1000
_PAUSE = wait_random_exponential(multiplier=0.1, max=3)

AnswerT = TypeVar("AnswerT")
Sleep = Callable[[float], Awaitable[None]]


class AzureTables:
    """`names` are those of the tables in the account, by what the ledger calls them."""

    def __init__(
        self,
        opened: AsyncOpened[TableServiceClient],
        names: Mapping[str, str],
        *,
        patience: timedelta = _PATIENCE,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._opened = opened
        self._clients = {
            table: opened.client.get_table_client(name) for table, name in names.items()
        }
        self._patience = patience
        self._sleep = sleep
        self._is_closed = False

    async def create(self) -> None:
        """Make the tables that are missing."""
        await asyncio.gather(*map(self._create, self._clients.values()))

    async def batch(
        self, table: str, partition: str, operations: Sequence[Operation]
    ) -> list[str | None]:
        check_batch(partition, operations)
        requests = [_request(partition, operation) for operation in operations]
        client = self._clients[table]

        async def send() -> list[str | None]:
            if len(requests) == 1:
                return [_etag(await _sent_alone(client, *requests[0]))]
            answers = await client.submit_transaction(requests)
            return [
                None if isinstance(operation, Delete) else _etag(answer)
                for operation, answer in zip(operations, answers, strict=True)
            ]

        return await self._answered(send, operations)

    async def get(self, table: str, partition: str, row: str) -> Row | None:
        async def read() -> TableEntity | None:
            try:
                return await self._clients[table].get_entity(partition, row)
            except ResourceNotFoundError as error:
                if is_of_the_table(error):
                    raise
                return None

        entity = await self._answered(read)
        return _row(table, entity) if entity is not None else None

    async def query(
        self,
        table: str,
        partition: str,
        first: str,
        end: str,
        limit: int,
        also: str | None = None,
    ) -> list[Row]:
        keys = f"RowKey ge '{first}' and RowKey lt '{end}'"
        if also is not None:
            keys = f"({keys} or RowKey eq '{also}')"
        return await self._found(table, f"PartitionKey eq '{partition}' and {keys}", limit)

    async def scan(self, table: str, after: tuple[str, str], end: str, limit: int) -> list[Row]:
        """Two requests: a filter with an `or` between partitions would read the whole table."""
        partition, row = after
        found: list[Row] = []
        if row:
            rest = f"PartitionKey eq '{partition}' and RowKey gt '{row}'"
            found = await self._found(table, rest, limit)
        if len(found) < limit:
            comparison = "gt" if row else "ge"
            others = f"PartitionKey {comparison} '{partition}' and PartitionKey lt '{end}'"
            found += await self._found(table, others, limit - len(found))
        return found

    async def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            await self._opened.close()

    async def _create(self, client: TableClient) -> None:
        async def create() -> None:
            with suppress(ResourceExistsError):
                await client.create_table()

        try:
            await self._answered(create)
        except StoreUnavailable as error:
            if error.__cause__ is None or not is_forbidden(error.__cause__):
                raise  # who may not make tables may still use those that are there

    async def _found(self, table: str, query: str, limit: int) -> list[Row]:
        """A page may come with less than there is, even with nothing, and a way to the next."""
        token: Any = None
        found: list[Row] = []

        async def page() -> tuple[list[TableEntity], Any]:
            size = min(limit - len(found), _PAGE)
            entities = self._clients[table].query_entities(query, results_per_page=size)
            pages = entities.by_page(continuation_token=token)
            async for page in pages:
                return [entity async for entity in page], getattr(pages, "continuation_token", None)
            return [], None

        while True:
            entities, token = await self._answered(page)
            found += [_row(table, entity) for entity in entities]
            if token is None or len(found) >= limit:
                return found[:limit]

    async def _answered(
        self, call: Callable[[], Awaitable[AnswerT]], operations: Sequence[Operation] = ()
    ) -> AnswerT:
        if self._is_closed:
            raise StoreUnavailable("the tables are closed")
        retrying = AsyncRetrying(
            retry=retry_if_exception(is_passing),
            wait=_pause,
            stop=stop_before_delay(self._patience),
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return await retrying(call)
        except FAULTS as error:
            raise condition(error, operations) or unavailable(error) from error


def _pause(state: RetryCallState) -> float:
    """What the service asks for, if it does; else a growing pause."""
    error = state.outcome.exception() if state.outcome else None
    return (asked_to_wait(error) if error else None) or _PAUSE(state)


def _request(partition: str, operation: Operation) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """As `submit_transaction` takes them."""
    entity = {"PartitionKey": partition, "RowKey": operation.row}
    if isinstance(operation, Delete):
        return "delete", entity, _condition(operation.etag)
    is_merge = isinstance(operation, Merge)
    properties = to_properties(operation.values, whole=not is_merge)
    if size_of(properties) > ENTITY_LIMIT:
        raise TooLarge(
            f"the row {operation.row} of {partition} is larger than the 1 MiB that Azure Tables"
            " allows"
        )
    if isinstance(operation, Insert):
        return "create", {**entity, **properties}, {}
    mode = UpdateMode.MERGE if is_merge else UpdateMode.REPLACE
    return "update", {**entity, **properties}, {"mode": mode, **_condition(operation.etag)}


def _condition(etag: str | None) -> dict[str, Any]:
    if etag is None:
        return {}
    return {"etag": etag, "match_condition": MatchConditions.IfNotModified}


async def _sent_alone(
    client: TableClient, verb: str, entity: dict[str, Any], options: dict[str, Any]
) -> Mapping[str, Any] | None:
    if verb == "create":
        return await client.create_entity(entity)
    if verb == "update":
        return await client.update_entity(entity, **options)
    await client.delete_entity(entity["PartitionKey"], entity["RowKey"], **options)
    return None


def _etag(answer: Mapping[str, Any] | None) -> str | None:
    return str(answer["etag"]) if answer is not None else None


def _row(table: str, entity: TableEntity) -> Row:
    properties = dict(entity)
    partition, key = properties.pop("PartitionKey"), properties.pop("RowKey")
    etag = entity.metadata["etag"]
    assert etag is not None, "every row has one"
    return Row(partition, key, etag, to_values(table, key, properties))
