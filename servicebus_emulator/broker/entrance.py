"""Where messages are sent: a queue or a topic."""

from collections.abc import Callable, Iterator, Sequence

from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.duplicates import History
from servicebus_emulator.broker.errors import (
    BrokerError,
    EntityDisabled,
    NotAllowed,
    QuotaExceeded,
)
from servicebus_emulator.broker.limits import check_messages
from servicebus_emulator.broker.records import IdSeen
from servicebus_emulator.broker.settings import (
    ACTIVE,
    RECEIVE_DISABLED,
    QueueSettings,
    TopicSettings,
)
from servicebus_emulator.broker.shelf import Shelf
from servicebus_emulator.broker.wiring import Refusal, Wiring

_SENDING = (ACTIVE, RECEIVE_DISABLED)
_MOST_HOPS = 4


class Entrance:
    """`shelf` gets what is sent. `used_bytes` says how full the entity is."""

    def __init__(
        self,
        shelf: Shelf,
        settings: QueueSettings | TopicSettings,
        wiring: Wiring,
        default_max_bytes: int,
        used_bytes: Callable[[], int],
    ) -> None:
        self.shelf = shelf
        self.history = History()
        self.settings = settings
        self.accessed_at = 0
        self._wiring = wiring
        self._default_max_bytes = default_max_bytes
        self._used_bytes = used_bytes

    @property
    def max_message_bytes(self) -> int:
        return self.settings.max_message_bytes or self._default_max_bytes

    def send(self, messages: Sequence[Content], now: int) -> None:
        self._check(messages)
        self.accessed_at = now
        if self.settings.requires_duplicate_detection:
            messages = [message for message in messages if self._is_new(message, now)]
        shelf = self.shelf
        for message in messages:
            when = message.scheduled_at
            if when is None or when <= now:
                shelf.arrive(message, now)
            else:
                shelf.schedule(message, when, now)

    def schedule(self, messages: Sequence[Content], now: int) -> list[int]:
        """A number for each, that of a duplicate, which is dropped, included."""
        self._check(messages)
        self.accessed_at = now
        return [self._schedule(message, now) for message in messages]

    def forward(self, message: Content, moment: int, hops: int, origin: str | None) -> None:
        """Take in what another entity sends on."""
        if hops > _MOST_HOPS:
            raise Refusal("MaxTransferHopCountExceeded", f"it was forwarded {_MOST_HOPS} times")
        try:
            self._check((message,))
        except BrokerError as error:
            raise Refusal(type(error).__name__, str(error)) from error
        if not self.settings.requires_duplicate_detection or self._is_new(message, moment):
            self.shelf.arrive(message, moment, hops, origin)

    def records(self, now: int) -> Iterator[IdSeen]:
        for message_id, until in self.history.seen(now):
            yield IdSeen(self.shelf.path, message_id, until)

    def _check(self, messages: Sequence[Content]) -> None:
        settings = self.settings
        if settings.status not in _SENDING:
            raise EntityDisabled(f"{self.shelf.path} is {settings.status}")
        check_messages(messages, self.max_message_bytes)
        if isinstance(settings, QueueSettings) and settings.requires_session:
            self._check_sessions(messages)
        coming = sum([message.size for message in messages])
        if self._used_bytes() + coming > settings.max_size_bytes:
            raise QuotaExceeded(f"{self.shelf.path} holds {settings.max_size_bytes} bytes at most")

    def _check_sessions(self, messages: Sequence[Content]) -> None:
        if any(message.session_id is None for message in messages):
            raise NotAllowed(f"{self.shelf.path} takes no message without a session id")

    def _is_new(self, message: Content, now: int) -> bool:
        message_id = message.message_id
        if message_id is None:
            return True
        if self.history.has(message_id, now):
            return False
        until = now + self.settings.duplicate_window
        self.history.add(message_id, until, now)
        if self._wiring.record is not None:
            self._wiring.record(IdSeen(self.shelf.path, message_id, until))
        return True

    def _schedule(self, message: Content, now: int) -> int:
        if self.settings.requires_duplicate_detection and not self._is_new(message, now):
            return self.shelf.reserve()
        when = message.scheduled_at
        if when is not None and when > now:
            return self.shelf.schedule(message, when, now)
        number = self.shelf.reserve()
        self.shelf.arrive(message, now)
        return number
