"""Queues through the real asyncio client."""

from datetime import timedelta

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.servicebus.aio.management import ServiceBusAdministrationClient as Client

from servicebus_emulator.administration import Request
from servicebus_emulator.administration.atom import ATOM, SERVICE_BUS
from servicebus_emulator.broker import QueueSettings
from tests.emulator.administration.serving import Served


async def test_a_queue_has_the_defaults_of_the_service(client: Client) -> None:
    queue = await client.create_queue("orders")
    assert queue.lock_duration == timedelta(minutes=1)
    assert (queue.max_delivery_count, queue.max_size_in_megabytes) == (10, 1024)
    assert (queue.requires_session, queue.requires_duplicate_detection) == (False, False)
    assert queue.dead_lettering_on_message_expiration is False
    assert queue.duplicate_detection_history_time_window == timedelta(minutes=10)
    assert isinstance(queue.default_message_time_to_live, timedelta)
    assert queue.default_message_time_to_live.days == 10675199
    assert (queue.status, queue.availability_status) == ("Active", "Available")
    assert (queue.enable_partitioning, queue.enable_express) == (False, False)
    assert (queue.forward_to, queue.user_metadata) == (None, None)
    assert queue.max_message_size_in_kilobytes == 256


async def test_settings_reach_the_broker(client: Client, served: Served) -> None:
    await client.create_queue("target")
    await client.create_queue(
        "orders",
        lock_duration=timedelta(seconds=12),
        max_delivery_count=3,
        default_message_time_to_live=timedelta(hours=2),
        dead_lettering_on_message_expiration=True,
        requires_session=True,
        requires_duplicate_detection=True,
        duplicate_detection_history_time_window="PT5M",
        max_size_in_megabytes=2048,
        auto_delete_on_idle=timedelta(days=1),
        user_metadata="<mine> & 'yours'",
        forward_dead_lettered_messages_to="target",
        max_message_size_in_kilobytes=1024,
        status="SendDisabled",
    )
    assert served.broker.queue("orders").settings == QueueSettings(
        lock_duration=12_000,
        max_delivery_count=3,
        default_ttl=7_200_000,
        dead_letter_on_expiry=True,
        requires_session=True,
        requires_duplicate_detection=True,
        duplicate_window=300_000,
        max_size_bytes=2048 * 1024 * 1024,
        auto_delete_on_idle=86_400_000,
        user_metadata="<mine> & 'yours'",
        forward_dead_letters_to="target",
        max_message_bytes=1024 * 1024,
        status="SendDisabled",
    )


async def test_what_was_created_is_got(client: Client, served: Served) -> None:
    created = await client.create_queue("a/b", lock_duration=timedelta(seconds=7))
    found = await client.get_queue("A/B")
    assert dict(found) == {**created, "name": "A/B"}
    assert found.user_metadata is None


async def test_an_update_changes_what_may_change(client: Client, served: Served) -> None:
    queue = await client.create_queue("orders", requires_session=True, user_metadata="old")
    queue.lock_duration = timedelta(seconds=30)
    await client.update_queue(queue, max_delivery_count=4)
    settings = served.broker.queue("orders").settings
    assert (settings.lock_duration, settings.max_delivery_count) == (30_000, 4)
    assert (settings.requires_session, settings.user_metadata) == (True, "old")
    assert settings.default_ttl is None


async def test_what_is_fixed_cannot_be_updated(client: Client) -> None:
    queue = await client.create_queue("orders")
    with pytest.raises(HttpResponseError, match="requires_session of orders is decided") as refused:
        await client.update_queue(queue, requires_session=True)
    assert refused.value.status_code == 400


async def test_a_deleted_queue_is_gone(client: Client) -> None:
    queue = await client.create_queue("orders")
    await client.delete_queue("ORDERS")
    with pytest.raises(ResourceNotFoundError):
        await client.get_queue("orders")
    with pytest.raises(ResourceNotFoundError):
        await client.update_queue(queue)
    with pytest.raises(ResourceNotFoundError):
        await client.delete_queue("orders")


async def test_a_name_is_taken_once_by_queues_and_topics(client: Client) -> None:
    await client.create_queue("orders")
    with pytest.raises(ResourceExistsError):
        await client.create_queue("Orders")
    with pytest.raises(ResourceExistsError):
        await client.create_topic("orders")


@pytest.mark.parametrize(
    "settings",
    [
        {"lock_duration": "PT6M"},
        {"lock_duration": "P10675199DT2H48M5.4775807S"},
        {"max_delivery_count": 0},
        {"status": "Sleeping"},
        {"enable_partitioning": True},
        {"enable_express": True},
    ],
)
async def test_settings_that_cannot_be_are_refused(
    client: Client, settings: dict[str, object]
) -> None:
    with pytest.raises(HttpResponseError, match="SubCode=40000") as refused:
        await client.create_queue("orders", **settings)  # type: ignore[arg-type]
    assert refused.value.status_code == 400


@pytest.mark.parametrize(
    "setting",
    [
        "<LockDuration>soon</LockDuration>",
        "<MaxDeliveryCount>ten</MaxDeliveryCount>",
        "<RequiresSession>perhaps</RequiresSession>",
        "<AuthorizationRules><AuthorizationRule/></AuthorizationRules>",
    ],
)
def test_values_that_cannot_be_read_are_refused(setting: str) -> None:
    description = f'<QueueDescription xmlns="{SERVICE_BUS}">{setting}</QueueDescription>'
    body = f'<entry xmlns="{ATOM}"><content>{description}</content></entry>'.encode()
    answer = Served().handle(Request("PUT", "/orders", body=body))
    assert answer.status == 400
    assert setting[1:10] in answer.body.decode()


async def test_queues_are_listed_in_pages(client: Client, served: Served) -> None:
    for number in range(105):
        served.broker.create_queue(f"q{number:03}", QueueSettings())
    assert [one.name async for one in client.list_queues()] == [f"q{n:03}" for n in range(105)]
    assert [request.query for request in served.requests] == [
        "$skip=0&$top=100&api-version=2024-05",
        "$skip=100&$top=100&api-version=2024-05",
    ]
    served.requests.clear()
    few = client.list_queues(start_index=2, max_page_size=40)
    assert len([one.name async for one in few]) == 103
    assert len(served.requests) == 3


async def test_there_is_no_page_after_the_last(client: Client, served: Served) -> None:
    for number in range(4):
        served.broker.create_queue(f"q{number}", QueueSettings())
    assert len([one async for one in client.list_queues(max_page_size=2)]) == 4
    assert len(served.requests) == 2


async def test_an_empty_namespace_lists_nothing(client: Client) -> None:
    assert [one async for one in client.list_queues()] == []
    assert [one async for one in client.list_topics()] == []


async def test_every_change_is_kept_before_its_answer(client: Client, served: Served) -> None:
    await client.create_queue("orders")
    assert served.kept == served.changes == 1
    await client.update_queue(await client.get_queue("orders"))
    assert served.kept == served.changes
    await client.delete_queue("orders")
    assert served.kept == served.changes


async def test_the_namespace_has_properties(client: Client) -> None:
    found = await client.get_namespace_properties()
    assert (found.name, found.messaging_sku) == ("127", "Standard")
    assert found.created_at_utc is not None
