"""Which bus a process opens, and what it keeps."""

import asyncio
import logging
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from azure.servicebus.aio.management import ServiceBusAdministrationClient

from lucius_bus.port import BusMessage
from lucius_bus.servicebus import ServiceBusBus
from lucius_bus.servicebus.administration import ServiceBusTopology
from lucius_bus.servicebus.administration_http import AdministrationTransport
from lucius_bus.topology import (
    SubscriptionSettings,
    Topology,
    TopologyReport,
    lane_topology,
)
from lucius_contract.routing import directive_topic, lane_of
from lucius_orchestrator.adapters.bus.embedded import EmbeddedBus
from lucius_orchestrator.adapters.registry import YamlRegistry
from lucius_orchestrator.bootstrap.bus import BusPortTaken, keyless_connection, open_bus
from lucius_orchestrator.bootstrap.topology import topology_of
from lucius_orchestrator.settings import Settings, load_settings
from servicebus_emulator.server import Emulator
from tests.bootstrap.planes import OCR, client, next_directive, plane
from tests.runner.deadlines import DEADLINE, seconds

WAIT = timedelta(seconds=20)
TOPIC = "global-bus-p0"
TOPOLOGY = Topology({TOPIC: lane_topology(["ocr"]).topics[TOPIC]})
MESSAGE = BusMessage("m1", b"{}", {"service": "ocr"})


def settings(folder: Path, **variables: str) -> Settings:
    given = {"LUCIUS_DATA_DIR": str(folder / "data"), "LUCIUS_BUS_PORT": "0"}
    return load_settings(given | variables)


async def test_without_a_name_it_is_an_emulator_inside_the_process(tmp_path: Path) -> None:
    async with open_bus(settings(tmp_path)) as opened:
        assert isinstance(opened.bus, EmbeddedBus)
        port = int(opened.place.address.removeprefix("sb://127.0.0.1:"))
        assert opened.place.connection == keyless_connection("127.0.0.1", port)
        with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE):
            pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)


async def test_a_connection_string_is_never_handed_on(tmp_path: Path) -> None:
    keyed = "Endpoint=sb://bus.example/;SharedAccessKeyName=root;SharedAccessKey=hunter2"
    async with open_bus(settings(tmp_path, LUCIUS_SERVICEBUS_CONNECTION=keyed)) as opened:
        assert isinstance(opened.bus, ServiceBusBus)
        assert opened.place == ("sb://bus.example", None)


async def test_a_namespace_is_used_by_its_name(tmp_path: Path) -> None:
    named = {"LUCIUS_SERVICEBUS_NAMESPACE": "bus.servicebus.windows.net"}
    async with open_bus(settings(tmp_path, **named)) as opened:
        assert opened.place == ("sb://bus.servicebus.windows.net", None)
    assert not (tmp_path / "data").exists()


async def test_what_was_published_survives_a_restart(tmp_path: Path) -> None:
    async with open_bus(settings(tmp_path)) as opened:
        await opened.topology.apply(TOPOLOGY)
        assert await opened.bus.publish(TOPIC, [MESSAGE]) == []
    async with open_bus(settings(tmp_path)) as opened:
        assert not (await opened.topology.compare(TOPOLOGY)).missing
        (delivery,) = await opened.bus.receive(TOPIC, "ocr", 1, WAIT)
        assert delivery.message.message_id == "m1"


async def test_beside_a_ledger_in_memory_nothing_is_kept(tmp_path: Path) -> None:
    async with open_bus(settings(tmp_path, LUCIUS_STORAGE_BACKEND="memory")) as opened:
        await opened.topology.apply(TOPOLOGY)
    assert not (tmp_path / "data").exists()


async def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        with pytest.raises(BusPortTaken, match=port):
            async with open_bus(settings(tmp_path, LUCIUS_BUS_PORT=port)):
                pass
    async with open_bus(settings(tmp_path)):  # the data folder was let go of
        pass


async def test_what_is_missing_inside_is_made_whatever_else_differs(tmp_path: Path) -> None:
    """A subscription that is otherwise than wanted keeps its messages, and no other is held up."""
    named = lane_topology(["embedding", "ocr"]).topics[TOPIC]
    async with open_bus(settings(tmp_path)) as opened:
        await opened.topology.apply(Topology({TOPIC: (SubscriptionSettings("ocr"),)}))
        report = await opened.topology.apply(Topology({TOPIC: named}))
        assert list(report.created) == [f"{TOPIC}/embedding"]
        assert [(entity, setting) for entity, setting, *_ in report.drift] == [
            (f"{TOPIC}/ocr", "filter")
        ]


async def test_ready_names_a_service_whose_subscription_was_deleted(tmp_path: Path) -> None:
    async with plane(tmp_path) as made, client(made) as http:
        assert made.bus is not None
        connection = made.bus.place.connection
        assert connection is not None
        await delete_subscription(connection, "global-bus-p3", "sis")
        ready = await http.get("/healthz/ready")
        assert ready.status_code == 503
        (check,) = [each for each in ready.json()["checks"] if each["name"] == "topology"]
        assert check["detail"] == (
            "service sis has no subscription on global-bus-p3: run `lucius topology apply`"
        )


async def delete_subscription(connection: str, topic: str, name: str) -> None:
    transport = AdministrationTransport(is_plain=True)
    async with ServiceBusAdministrationClient.from_connection_string(
        connection, transport=transport
    ) as administration:
        await administration.delete_subscription(topic, name)


STAMP = """
protocol_id: stamp
version: "1"
request_type: STAMP
steps:
  - {step_type: STAMP, service: stamper, payload_schema: {type: object}}
"""


class Heard(logging.Handler):
    """Sets an event when something is logged."""

    def __init__(self, message: str) -> None:
        super().__init__()
        self.event = asyncio.Event()
        self._message = message

    def emit(self, record: logging.LogRecord) -> None:
        if record.getMessage() == self._message:
            self.event.set()


@pytest.fixture
def created(caplog: pytest.LogCaptureFixture) -> Iterator[asyncio.Event]:
    caplog.set_level(logging.INFO, "lucius_orchestrator")
    heard, logger = Heard("topology.created"), logging.getLogger("lucius_orchestrator.topology")
    logger.addHandler(heard)
    yield heard.event
    logger.removeHandler(heard)


async def test_a_protocol_that_is_added_brings_the_subscriptions_of_its_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, created: asyncio.Event
) -> None:
    monkeypatch.setattr(
        "lucius_orchestrator.bootstrap.protocol_source.FILES_INTERVAL", timedelta(milliseconds=1)
    )
    folder = tmp_path / "config" / "protocols"
    folder.mkdir(parents=True)
    (folder / "first.yaml").write_text(STAMP.replace("stamp", "first").replace("STAMP", "FIRST"))
    async with (
        asyncio.timeout(DEADLINE),
        plane(tmp_path, LUCIUS_PROTOCOLS_DIR=str(folder.parent)) as made,
        client(made) as http,
    ):
        created.clear()  # what the start has made
        (folder / "stamp.yaml").write_text(STAMP)
        await created.wait()
        request = {**OCR, "request_type": "STAMP", "payload": {}}
        assert (await http.post("/v1/orchestrate", json=request)).status_code == 202
        directive = await next_directive(made, "stamper")
        assert directive.step_type == "STAMP"


async def test_nothing_is_published_before_the_topology_was_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that is not there would refuse a directive for good. Here all are there, so that a
    directive that goes out too early is seen."""
    begin = asyncio.Event()
    real = ServiceBusTopology.apply

    async def later(self: ServiceBusTopology, topology: Topology) -> TopologyReport:
        await begin.wait()
        return await real(self, topology)

    monkeypatch.setattr(ServiceBusTopology, "apply", later)
    emulator = Emulator()
    EmbeddedBus(emulator).apply(topology_of(YamlRegistry(None).load()))
    await emulator.start()
    shared = {"LUCIUS_SERVICEBUS_CONNECTION": keyless_connection("127.0.0.1", emulator.port)}
    async with (
        asyncio.timeout(seconds(60)),
        plane(tmp_path, **shared) as made,
        client(made) as http,
    ):
        assert (await http.post("/v1/orchestrate", json=OCR)).status_code == 202
        assert made.bus is not None
        topic = directive_topic(lane_of("acme"))
        assert await made.bus.bus.receive(topic, "ocr", 1, timedelta(seconds=2)) == []
        begin.set()
        assert (await next_directive(made)).attempt_no == 1
    await emulator.stop()
