"""Counts of messages, and the synchronous client."""

import asyncio
from collections.abc import Callable

from azure.servicebus.aio.management import ServiceBusAdministrationClient as Client
from azure.servicebus.management import ServiceBusAdministrationClient as SyncClient
from azure.servicebus.management import SqlRuleFilter

from servicebus_emulator.broker import DeadLetter, QueueSettings
from servicebus_emulator.messages import Message
from tests.emulator.administration.serving import START, Served, sync_client


async def test_messages_are_counted_by_their_state(client: Client, served: Served) -> None:
    broker = served.broker
    broker.create_queue("orders", QueueSettings())
    broker.send("orders", [Message.build(b"one"), Message.build(b"two"), Message.build(b"three")])
    broker.schedule("orders", [Message.build(b"later", scheduled_at=START + 60_000)])
    source = broker.source("orders")
    first, second = source.take(2)
    source.settle(first.token, DeadLetter("bad", "very bad"))
    counts = await client.get_queue_runtime_properties("orders")
    assert (counts.active_message_count, counts.dead_letter_message_count) == (2, 1)
    assert (counts.scheduled_message_count, counts.total_message_count) == (1, 4)
    assert (counts.transfer_message_count, counts.transfer_dead_letter_message_count) == (0, 0)
    assert counts.size_in_bytes is not None
    assert counts.size_in_bytes > 0
    assert second.delivery_count == 0


async def test_the_synchronous_client_works_too(served: Served) -> None:
    def manage(use: Callable[[SyncClient], object]) -> None:
        with sync_client(served.connection_string()) as client:
            use(client)

    await asyncio.to_thread(manage, _manage)
    assert [one.name for one in served.broker.queues()] == ["orders"]
    assert [one.name for one in served.broker.topics()] == []


def _manage(client: SyncClient) -> None:
    client.create_queue("orders", lock_duration="PT5S")
    client.update_queue(client.get_queue("orders"), max_delivery_count=2)
    assert client.get_queue("orders").max_delivery_count == 2
    assert [one.name for one in client.list_queues()] == ["orders"]
    client.create_topic("lane")
    client.create_subscription("lane", "ocr")
    client.create_rule("lane", "ocr", "mine", filter=SqlRuleFilter("a = 1"))
    client.delete_rule("lane", "ocr", "$Default")
    assert [one.name for one in client.list_rules("lane", "ocr")] == ["mine"]
    assert client.get_subscription_runtime_properties("lane", "ocr").total_message_count == 0
    assert client.get_namespace_properties().name == "127"
    client.delete_subscription("lane", "ocr")
    client.delete_topic("lane")
