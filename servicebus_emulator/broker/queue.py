"""A queue: sent to and received from under one name."""

from servicebus_emulator.broker.entrance import Entrance
from servicebus_emulator.broker.settings import QueueSettings
from servicebus_emulator.broker.source import Source
from servicebus_emulator.broker.wiring import Wiring


class Queue:
    __slots__ = ("created_at", "entrance", "settings", "source", "updated_at")

    def __init__(
        self, source: Source, settings: QueueSettings, wiring: Wiring, max_bytes: int, created: int
    ) -> None:
        self.source = source
        self.settings = settings
        self.entrance = Entrance(source, settings, wiring, max_bytes, source.used_bytes)
        self.entrance.accessed_at = created
        self.created_at = created
        self.updated_at = created

    def update(self, settings: QueueSettings, now: int) -> None:
        self.settings = self.entrance.settings = settings
        self.source.max_message_bytes = self.entrance.max_message_bytes
        self.source.update(settings, None)
        self.source.forward_all(now)
        self.source.wake()
