"""Enqueue in the caller's own PostgreSQL transaction."""

from collections.abc import Sequence
from json.encoder import encode_basestring as quoted
from typing import Any

from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from lucius_outbox.errors import NoTransaction
from lucius_outbox.message import Message, NewRow, Receipt, new_rows, receipts
from lucius_outbox.postgres import statements as sql


async def enqueue(transaction: AsyncConnection[Any], message: Message) -> Receipt:
    """One message, to be published once the caller's transaction has committed."""
    (receipt,) = await enqueue_all(transaction, [message])
    return receipt


async def enqueue_all(
    transaction: AsyncConnection[Any], messages: Sequence[Message]
) -> list[Receipt]:
    """All of them or, if one is invalid, none, in one round trip; a receipt for each.

    Never begins, commits or rolls back anything; a connection in autocommit mode outside a
    transaction is refused. A transaction that enqueues a dedupe key which another one has just
    enqueued waits for its end, as for any unique index. Errors of psycopg pass through: they are
    about the caller's transaction. The commit wakes the dispatchers.
    """
    if transaction.autocommit and transaction.info.transaction_status is TransactionStatus.IDLE:
        raise NoTransaction(
            "the connection is in autocommit mode: enqueue inside `async with"
            " connection.transaction()`"
        )
    rows = new_rows(messages)
    if not rows:
        return []
    values = {
        "ids": sql.uuids(row.id for row in rows),
        "rows": f"[{','.join(map(_json, rows))}]",
    }
    async with transaction.cursor(row_factory=tuple_row) as cursor:
        await cursor.execute(sql.ENQUEUE, values)
        return receipts(rows, {row[0] for row in await cursor.fetchall()})


def _json(row: NewRow) -> str:
    """By hand: the payload is JSON already, and this is where the client's time goes."""
    row_id, namespace, topic, tenant_id, dedupe_key, ordering_key, payload, not_before, queue = row
    text = f'{{"id":"{row_id}","namespace":{quoted(namespace)},"topic":{quoted(topic)}'
    if tenant_id is not None:
        text += f',"tenant_id":{quoted(tenant_id)}'
    if dedupe_key is not None:
        text += f',"dedupe_key":{quoted(dedupe_key)}'
    if ordering_key is not None:
        text += f',"ordering_key":{quoted(ordering_key)}'
    if not_before is not None:
        text += f',"not_before":"{not_before.isoformat()}"'
    if queue is not None:
        text += f',"queue":{quoted(queue)}'
    return f'{text},"payload":{payload}}}'
