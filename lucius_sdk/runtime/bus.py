"""The bus that the settings name."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

from lucius_bus.port import Bus
from lucius_sdk.servicebus_consumer.schedule import LONG_LOOK, ROUND, SHORT_LOOK
from lucius_sdk.settings import ServiceSettings

_LINGER = timedelta(seconds=50)
"""Below the idle time-out of a connection. To open one costs half a second for each lane, which a
service with few slots would pay after every step that takes longer than this."""


class MissingPackage(Exception):
    """Something that is installed with an extra is not there."""


@asynccontextmanager
async def open_bus(settings: ServiceSettings) -> AsyncIterator[Bus]:
    """With a key, or with the identity that the machine has."""
    try:
        from lucius_bus.servicebus import ServiceBusBus, ServiceBusSettings, default_credential
    except ImportError as error:
        raise MissingPackage("the bus needs more: pip install 'lucius-sdk[azure]'") from error
    patience = ServiceBusSettings(
        shortest_wait=timedelta(seconds=SHORT_LOOK),
        longest_look=timedelta(seconds=LONG_LOOK),
        settle_within=timedelta(seconds=ROUND),
        linger=_LINGER,
        confirms_settlements=False,
    )
    if settings.servicebus_connection is not None:
        text = settings.servicebus_connection.reveal()
        bus = ServiceBusBus.from_connection_string(text, settings=patience)
        try:
            yield bus
        finally:
            await bus.close()
        return
    assert settings.servicebus_namespace is not None, "the settings name a bus"
    async with default_credential() as credential:
        bus = ServiceBusBus(settings.servicebus_namespace, credential, settings=patience)
        try:
            yield bus
        finally:
            await bus.close()
