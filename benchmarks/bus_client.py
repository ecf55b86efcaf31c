"""The real client as a process of its own: sends messages, or receives and completes them, and says
what that cost it.

    python -m benchmarks.bus_client send|receive CONNECTION COUNT
"""

import asyncio
import json
import resource
import sys
import time
from uuid import UUID

from azure.servicebus import ServiceBusMessage
from azure.servicebus.aio import ServiceBusClient

QUEUE = "bench"
_AT_ONCE = 100
_BODY = b"x" * 1024
_PROPERTIES: dict[str | bytes, int | float | bytes | bool | str | UUID] = {
    "type": "DIRECTIVE",
    "step_type": "OCR",
    "service": "ocr",
    "mode": "DEFAULT",
    "lane": 3,
    "tenant_id": "acme",
    "attempt_no": 1,
}


async def send(client: ServiceBusClient, count: int) -> None:
    async with client.get_queue_sender(QUEUE) as sender:
        await asyncio.to_thread(sys.stdin.readline)
        _begin()
        for start in range(0, count, _AT_ONCE):
            batch = [_message(n) for n in range(start, min(start + _AT_ONCE, count))]
            await sender.send_messages(batch)
        _end()


async def receive(client: ServiceBusClient, count: int) -> None:
    async with client.get_queue_receiver(QUEUE, prefetch_count=_AT_ONCE) as receiver:
        await receiver.peek_messages(1)
        await asyncio.to_thread(sys.stdin.readline)
        _begin()
        done = 0
        while done < count:
            for message in await receiver.receive_messages(_AT_ONCE, max_wait_time=30):
                await receiver.complete_message(message)
                done += 1
        _end()


def _message(number: int) -> ServiceBusMessage:
    return ServiceBusMessage(_BODY, message_id=str(number), application_properties=_PROPERTIES)


_started = [0.0, 0.0]


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _begin() -> None:
    _started[:] = [_cpu(), time.time()]


def _end() -> None:
    print(json.dumps({"cpu": _cpu() - _started[0], "began": _started[1], "ended": time.time()}))


async def _main(task: str, connection: str, count: int) -> None:
    async with ServiceBusClient.from_connection_string(connection) as client:
        print("ready", flush=True)
        await {"send": send, "receive": receive}[task](client, count)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
