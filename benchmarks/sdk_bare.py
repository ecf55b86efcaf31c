"""What the client of the bus leaves at best: a loop for each lane that receives, sends two messages
for each one that came, all in one batch, to the reply topic, and completes them one by one.

    python -m benchmarks.sdk_bare CONNECTION SERVICE
"""

import asyncio
import sys
from typing import Any

from azure.servicebus import ServiceBusMessage, ServiceBusReceivedMessage
from azure.servicebus.aio import ServiceBusClient

from lucius_contract.routing import LANES, directive_topic, reply_topic

AT_ONCE = 64 // LANES
"""Together as many as the service has slots: what is received and not settled is bounded alike."""
_WAIT = 0.02
_COPIED = ("jobId", "traceparent")
_ACK = b'{"type":"ACK","status":"ACKED",' + b" " * 400 + b"}"
_RESULT = b'{"type":"RESULT","status":"SUCCEEDED",' + b" " * 430 + b"}"


async def serve(connection: str, service: str) -> None:
    async with ServiceBusClient.from_connection_string(connection) as client:
        await asyncio.gather(*(_serve_lane(client, lane, service) for lane in range(LANES)))


async def _serve_lane(client: ServiceBusClient, lane: int, service: str) -> None:
    """Settlements one after the other: side by side they hold each other up in this client."""
    async with (
        client.get_subscription_receiver(
            directive_topic(lane), service, prefetch_count=AT_ONCE, socket_timeout=_WAIT
        ) as receiver,
        client.get_topic_sender(reply_topic(lane)) as sender,
    ):
        while True:
            received = await receiver.receive_messages(AT_ONCE, max_wait_time=_WAIT)
            if received:
                await sender.send_messages([reply for one in received for reply in _replies(one)])
            for message in received:
                await receiver.complete_message(message)


def _replies(message: ServiceBusReceivedMessage) -> list[ServiceBusMessage]:
    """With the properties and about the size of real ones."""
    found = {_text(name): value for name, value in (message.application_properties or {}).items()}
    rest: dict[str | bytes, Any] = {name: _text(found[name]) for name in _COPIED}
    id, key = message.message_id, message.partition_key
    return [
        ServiceBusMessage(
            body,
            message_id=f"{id}.{type}",
            partition_key=key,
            application_properties={"type": type, **rest},
        )
        for type, body in (("ACK", _ACK), ("RESULT", _RESULT))
    ]


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
