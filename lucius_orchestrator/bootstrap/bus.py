"""The bus of a process: a Service Bus namespace that processes share, or an emulator of one inside
this process, on a port where services reach it."""

import errno
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lucius_bus.port import Bus
from lucius_bus.topology import TopologyAdministration
from lucius_contract.routing import DIRECTIVE_TOPIC_PREFIX, REPLY_TOPIC_PREFIX
from lucius_orchestrator.bootstrap.stores import make_folder
from lucius_orchestrator.bootstrap.topology_keeper import FRESH
from lucius_orchestrator.security.callback_tokens import load_or_create_key
from lucius_orchestrator.settings import Settings, StorageBackend
from lucius_settings.connections import endpoint_of

if TYPE_CHECKING:
    from azure.core.credentials_async import AsyncTokenCredential

    from lucius_bus.servicebus.administration import ServiceBusTopology
    from servicebus_emulator.journal import Journal
    from servicebus_emulator.sas import Keys

_LOOPBACK = "127.0.0.1"
SERVICES_KEY = "services"


class BusPortTaken(Exception):
    def __init__(self, port: int) -> None:
        super().__init__(f"port {port}, of the bus, is taken")
        self.port = port


class BusPlace(NamedTuple):
    """`connection` is what a service is given to reach it; None where it holds a secret, which is
    neither printed nor logged."""

    address: str
    connection: str | None = None


class OpenBus(NamedTuple):
    """`fresh` is how long a look at its topology counts; None: looking costs nothing."""

    bus: Bus
    topology: TopologyAdministration
    place: BusPlace
    fresh: timedelta | None


def keyless_connection(host: str, port: int) -> str:
    """For an emulator without keys: any key will do, but the clients want one."""
    return _emulator_connection(host, port, "local", "local")


def connection_inside(settings: Settings, port: int) -> str:
    """What a service is given for the bus inside `lucius up` at that port. It holds a secret where
    the data folder has a key, as it does once it was served with auth on; without auth that key is
    as good as any other."""
    file = bus_key_file(settings)
    if not file.exists():
        return keyless_connection(_LOOPBACK, port)
    return _emulator_connection(_LOOPBACK, port, SERVICES_KEY, _stored_key(file))


def bus_key_file(settings: Settings) -> Path:
    return settings.data_dir / "bus.key"


def _emulator_connection(host: str, port: int, name: str, key: str) -> str:
    return (
        f"Endpoint=sb://{host}:{port};SharedAccessKeyName={name};SharedAccessKey={key};"
        "UseDevelopmentEmulator=true;"
    )


def _keys_inside(settings: Settings) -> "Keys":
    """None are needed without auth. With it services have a key that lets them do what they must:
    they cannot send directives, read replies or change topics. The control plane needs no key."""
    from servicebus_emulator.sas import Grant, Keys, Right

    if not settings.auth:
        return Keys()
    make_folder(settings.data_dir)
    of_a_service = (
        Grant(Right.LISTEN, DIRECTIVE_TOPIC_PREFIX),
        Grant(Right.SEND, REPLY_TOPIC_PREFIX),
    )
    key = _stored_key(bus_key_file(settings))
    return Keys({SERVICES_KEY: key}, {SERVICES_KEY: of_a_service})


def _stored_key(file: Path) -> str:
    return b64encode(load_or_create_key(file, "the bus")).decode()


@asynccontextmanager
async def open_bus(settings: Settings) -> AsyncIterator[OpenBus]:
    opening = _open_shared if settings.shares_bus else _open_inside
    async with opening(settings) as opened:
        yield opened


@asynccontextmanager
async def open_topology(settings: Settings) -> AsyncIterator["ServiceBusTopology"]:
    """The administration of a namespace that processes share, alone."""
    async with AsyncExitStack() as stack:
        yield await _topology(settings, await _identity(settings, stack), stack)


@asynccontextmanager
async def _open_shared(settings: Settings) -> AsyncIterator[OpenBus]:
    from lucius_bus.servicebus import ServiceBusBus

    async with AsyncExitStack() as stack:
        credential = await _identity(settings, stack)
        topology = await _topology(settings, credential, stack)
        if credential is None:
            bus = ServiceBusBus.from_connection_string(_connection_of(settings))
        else:
            bus = ServiceBusBus(_namespace_of(settings), credential)
        stack.push_async_callback(bus.close)
        yield OpenBus(bus, topology, BusPlace(address_of(settings)), FRESH)


async def _topology(
    settings: Settings, credential: "AsyncTokenCredential | None", stack: AsyncExitStack
) -> "ServiceBusTopology":
    from lucius_bus.servicebus.administration import ServiceBusTopology

    if credential is None:
        topology = ServiceBusTopology.from_connection_string(_connection_of(settings))
    else:
        topology = ServiceBusTopology(_namespace_of(settings), credential)
    return await stack.enter_async_context(topology)


async def _identity(settings: Settings, stack: AsyncExitStack) -> "AsyncTokenCredential | None":
    """None: a connection string has the credential in it."""
    from lucius_bus.servicebus import default_credential

    if settings.servicebus_connection is not None:
        return None
    return await stack.enter_async_context(default_credential())


def address_of(settings: Settings) -> str:
    """Where the shared bus is, without anything secret."""
    if settings.servicebus_connection is not None:
        return endpoint_of(settings.servicebus_connection)
    return f"sb://{_namespace_of(settings)}"


def _namespace_of(settings: Settings) -> str:
    assert settings.servicebus_namespace is not None, "a bus is shared"
    return settings.servicebus_namespace


def _connection_of(settings: Settings) -> str:
    assert settings.servicebus_connection is not None, "a bus is shared"
    return settings.servicebus_connection.reveal()


@asynccontextmanager
async def _open_inside(settings: Settings) -> AsyncIterator[OpenBus]:
    """Who closes it does so after everything that uses it."""
    from lucius_orchestrator.adapters.bus.embedded import EmbeddedBus, EmbeddedTopology
    from servicebus_emulator.server import Emulator

    async with AsyncExitStack() as stack:
        keys = _keys_inside(settings)
        journal = _journal_of(settings)
        if journal is not None:
            stack.callback(journal.close)
        emulator = Emulator(keys=keys, journal=journal)
        try:
            await emulator.start(_LOOPBACK, settings.bus_port)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise BusPortTaken(settings.bus_port) from error
            raise
        stack.push_async_callback(emulator.stop)
        bus = EmbeddedBus(emulator)
        stack.push_async_callback(bus.close)
        address = f"sb://{_LOOPBACK}:{emulator.port}"
        connection = None if keys else keyless_connection(_LOOPBACK, emulator.port)
        place = BusPlace(address, connection)
        yield OpenBus(bus, EmbeddedTopology(bus, emulator.broker), place, None)


def _journal_of(settings: Settings) -> "Journal | None":
    """A ledger that forgets everything would not know what the messages are about."""
    from servicebus_emulator.journal import Journal

    if settings.storage_backend is StorageBackend.MEMORY:
        return None
    make_folder(settings.data_dir)
    return Journal(settings.data_dir / "bus")
