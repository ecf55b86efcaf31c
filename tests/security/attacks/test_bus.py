"""The bus inside `lucius up` with auth on: what strangers, and services with their key, may not."""

import os
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from azure.core.credentials import AzureSasCredential
from azure.servicebus import ServiceBusMessage
from azure.servicebus._pyamqp.utils import generate_sas_token
from azure.servicebus.aio import ServiceBusClient
from azure.servicebus.aio.management import ServiceBusAdministrationClient
from azure.servicebus.exceptions import ServiceBusAuthenticationError, ServiceBusError

from lucius_bus.port import BusMessage
from lucius_bus.servicebus.administration_http import AdministrationTransport
from lucius_bus.topology import Topology, lane_topology
from lucius_orchestrator.bootstrap.bus import OpenBus, bus_key_file, connection_inside, open_bus
from lucius_orchestrator.settings import Settings, load_settings
from tests.runner.deadlines import DEADLINE

LANE, REPLIES = "global-bus-p0", "global-bus-replies-p0"
SERVICE, INVOKER = "ocr", "lucius-invoker"
WAIT = timedelta(seconds=DEADLINE)
ALL = lane_topology([SERVICE]).topics
TOPOLOGY = Topology({name: ALL[name] for name in (LANE, REPLIES)})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """In a folder that exists and is open, as many are."""
    (tmp_path / "data").mkdir(mode=0o755)
    return load_settings(
        {
            "LUCIUS_DATA_DIR": str(tmp_path / "data"),
            "LUCIUS_BUS_PORT": "0",
            "LUCIUS_AUTH": "on",
        }
    )


@pytest.fixture
async def bus(settings: Settings) -> AsyncIterator[OpenBus]:
    async with open_bus(settings) as opened:
        await opened.topology.apply(TOPOLOGY)
        directive = BusMessage("m1", b"{}", {"service": SERVICE})
        assert await opened.bus.publish(LANE, [directive]) == []
        yield opened


@pytest.fixture
def port(bus: OpenBus) -> int:
    return int(bus.place.address.rpartition(":")[2])


@pytest.fixture
async def service(settings: Settings, port: int) -> AsyncIterator[ServiceBusClient]:
    async with _client(connection_inside(settings, port)) as client:
        yield client


@pytest.fixture
async def stranger(port: int) -> AsyncIterator[ServiceBusClient]:
    async with _client(_connection(port, "local", "local")) as client:
        yield client


def _connection(port: int, name: str, key: str) -> str:
    return (
        f"Endpoint=sb://127.0.0.1:{port};SharedAccessKeyName={name};SharedAccessKey={key};"
        "UseDevelopmentEmulator=true;"
    )


def _client(connection: str) -> ServiceBusClient:
    return ServiceBusClient.from_connection_string(connection, retry_total=0)


async def listen(client: ServiceBusClient) -> None:
    async with client.get_subscription_receiver(LANE, SERVICE) as receiver:
        await receiver.receive_messages(1, max_wait_time=DEADLINE)


async def peek(client: ServiceBusClient) -> None:
    async with client.get_subscription_receiver(LANE, SERVICE) as receiver:
        await receiver.peek_messages(1)


async def read_dead_letters(client: ServiceBusClient) -> None:
    async with client.get_subscription_receiver(LANE, SERVICE, sub_queue="deadletter") as receiver:
        await receiver.peek_messages(1)


async def read_replies(client: ServiceBusClient) -> None:
    async with client.get_subscription_receiver(REPLIES, INVOKER) as receiver:
        await receiver.receive_messages(1, max_wait_time=DEADLINE)


async def peek_replies(client: ServiceBusClient) -> None:
    async with client.get_subscription_receiver(REPLIES, INVOKER) as receiver:
        await receiver.peek_messages(1)


async def send_directive(client: ServiceBusClient) -> None:
    async with client.get_topic_sender(LANE) as sender:
        await sender.send_messages(ServiceBusMessage(b"forged"))


async def schedule_directive(client: ServiceBusClient) -> None:
    """By the management node, past the link on which messages are sent."""
    async with client.get_topic_sender(LANE) as sender:
        later = datetime.now(UTC) + timedelta(hours=1)
        await sender.schedule_messages(ServiceBusMessage(b"forged"), later)


async def reply(client: ServiceBusClient) -> None:
    async with client.get_topic_sender(REPLIES) as sender:
        await sender.send_messages(ServiceBusMessage(b"{}"))


Attack = Callable[[ServiceBusClient], Awaitable[None]]
MORE_OF_A_STRANGER: list[Attack] = [
    peek,
    read_dead_letters,
    read_replies,
    send_directive,
    schedule_directive,
]
OF_A_SERVICE: list[Attack] = [read_replies, peek_replies, send_directive, schedule_directive]


@pytest.mark.parametrize(
    "attack",
    [listen, reply, *(pytest.param(each, marks=pytest.mark.check) for each in MORE_OF_A_STRANGER)],
)
async def test_a_process_without_the_key_does_nothing_on_the_bus(
    stranger: ServiceBusClient, attack: Attack
) -> None:
    with pytest.raises(ServiceBusAuthenticationError):
        await attack(stranger)


@pytest.mark.check
@pytest.mark.parametrize("attack", OF_A_SERVICE)
async def test_a_service_with_the_key_does_no_more_than_services_must(
    service: ServiceBusClient, attack: Attack
) -> None:
    with pytest.raises(ServiceBusError, match="right to"):
        await attack(service)


async def test_a_service_with_the_key_gets_directives_and_replies(
    bus: OpenBus, service: ServiceBusClient
) -> None:
    async with service.get_subscription_receiver(LANE, SERVICE) as receiver:
        (message,) = await receiver.receive_messages(1, max_wait_time=DEADLINE)
        await receiver.renew_message_lock(message)
        await receiver.complete_message(message)
    await reply(service)
    (delivery,) = await bus.bus.receive(REPLIES, INVOKER, 1, WAIT)
    assert delivery.message.body == b"{}"


@pytest.mark.check
@pytest.mark.parametrize("fault", ["expired", "other resource", "other key", "no key"])
async def test_a_token_that_is_not_good_opens_nothing(
    settings: Settings, port: int, fault: str
) -> None:
    key = connection_inside(settings, port).partition("SharedAccessKey=")[2].partition(";")[0]
    here, soon = f"sb://127.0.0.1:{port}/{LANE}", int(datetime.now(UTC).timestamp()) + 600
    tokens = {
        "expired": (here, "services", key, 1_000_000_000),
        "other resource": (f"sb://127.0.0.1:{port}/global-bus-p1", "services", key, soon),
        "other key": (here, "services", "guess", soon),
        "no key": (here, "root", "", soon),
    }
    token: str = generate_sas_token(*tokens[fault])  # type: ignore[no-untyped-call]
    client = ServiceBusClient(
        f"sb://127.0.0.1:{port}", AzureSasCredential(token), use_tls=False, retry_total=0
    )
    async with client:
        with pytest.raises(ServiceBusError):
            await listen(client)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/$Resources/topics"),
        ("GET", f"/{LANE}/subscriptions/{SERVICE}"),
        ("DELETE", f"/{LANE}"),
        ("PUT", "/mine"),
        ("POST", "/$emulator/faults"),
        ("GET", "/$emulator/faults"),
    ],
)
async def test_the_http_surface_is_closed_to_strangers_and_services(
    settings: Settings, bus: OpenBus, port: int, method: str, path: str
) -> None:
    del bus
    key = connection_inside(settings, port).partition("SharedAccessKey=")[2].partition(";")[0]
    here, soon = f"http://127.0.0.1:{port}", int(datetime.now(UTC).timestamp()) + 600
    token: str = generate_sas_token(here, "services", key, soon)  # type: ignore[no-untyped-call]
    async with httpx.AsyncClient(base_url=here) as http:
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": token}):
            answer = await http.request(method, path, headers=headers, content=b"{}")
            assert answer.status_code == 401, answer.text


async def test_a_client_of_azure_manages_nothing_with_the_key_of_services(
    settings: Settings, port: int
) -> None:
    transport = AdministrationTransport(is_plain=True)
    async with ServiceBusAdministrationClient.from_connection_string(
        connection_inside(settings, port), transport=transport
    ) as administration:
        with pytest.raises(Exception, match="no right to manage"):
            await administration.create_topic("mine")


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


async def test_the_key_is_for_its_owner_alone_and_lasts(settings: Settings) -> None:
    connections = []
    for _ in range(2):
        async with open_bus(settings) as opened:
            assert opened.place.connection is None
            connections.append(connection_inside(settings, 1))
    assert len(set(connections)) == 1
    assert "SharedAccessKeyName=services" in connections[0]


@pytest.mark.usefixtures("open_umask")
async def test_no_other_user_reads_the_key(settings: Settings) -> None:
    async with open_bus(settings):
        pass
    assert stat.S_IMODE(bus_key_file(settings).stat().st_mode) == 0o600


async def test_the_key_is_another_in_each_data_folder(tmp_path: Path) -> None:
    found = set()
    for name in ("a", "b"):
        given = {"LUCIUS_DATA_DIR": str(tmp_path / name), "LUCIUS_BUS_PORT": "0"}
        one = load_settings({**given, "LUCIUS_AUTH": "on"})
        async with open_bus(one):
            found.add(connection_inside(one, 1))
    assert len(found) == 2


async def test_without_auth_the_bus_is_as_open_as_the_api(tmp_path: Path) -> None:
    given = {"LUCIUS_DATA_DIR": str(tmp_path / "data"), "LUCIUS_BUS_PORT": "0"}
    async with open_bus(load_settings(given)) as opened:
        await opened.topology.apply(TOPOLOGY)
        assert opened.place.connection is not None
        async with _client(opened.place.connection) as client:
            await reply(client)
    assert not (tmp_path / "data" / "bus.key").exists()
