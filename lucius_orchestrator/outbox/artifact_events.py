"""The delivery of events of artifacts: to a topic of the bus, or to nobody but the log, which has
them from the transaction that did what they tell."""

import json
from collections.abc import Sequence
from datetime import timedelta

from lucius_bus.port import Bus, BusMessage, Properties
from lucius_outbox.dispatcher import DispatchSettings
from lucius_outbox.message import Claimed, Failure
from lucius_outbox.publishing import Publish

SETTINGS = DispatchSettings(
    concurrency=1,
    lease=timedelta(seconds=60),
    poll_interval=timedelta(seconds=1),
    retention=timedelta(days=1),
)


def to_topic(bus: Bus, topic: str) -> Publish:
    """A message's id is its event's, so that a bus that looks for duplicates finds them."""

    async def publish(claims: Sequence[Claimed]) -> list[Failure]:
        by_id = {claimed.payload["event_id"]: claimed for claimed in claims}
        unpublished = await bus.publish(topic, [_message(claimed) for claimed in claims])
        return [Failure(by_id[each.message.message_id], str(each.error)) for each in unpublished]

    return publish


async def to_nobody(_: Sequence[Claimed]) -> None:
    """Without a topic an event is delivered when it is committed."""


def _message(claimed: Claimed) -> BusMessage:
    body = json.dumps(claimed.payload, ensure_ascii=False).encode()
    return BusMessage(claimed.payload["event_id"], body, _properties(claimed))


def _properties(claimed: Claimed) -> Properties:
    """What subscriptions filter by."""
    tenant_id = claimed.payload.get("tenant_id")
    return {"type": claimed.topic, **({} if tenant_id is None else {"tenant_id": tenant_id})}
