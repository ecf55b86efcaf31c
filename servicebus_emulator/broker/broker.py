"""The broker: its entities, and the verbs of senders."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from servicebus_emulator.broker.administration import Administration
from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.deadlines import NEVER
from servicebus_emulator.broker.entrance import Entrance
from servicebus_emulator.broker.errors import EntityNotFound, NotAllowed
from servicebus_emulator.broker.namespace import Namespace
from servicebus_emulator.broker.observing import Observation
from servicebus_emulator.broker.records import Record
from servicebus_emulator.broker.restoring import restored, snapshot_of
from servicebus_emulator.broker.source import Source


class Broker(Administration):
    """`clock` gives milliseconds since the epoch, `tokens` 16 bytes that are new each time.
    `record` gets every durable change, in order, while it is made; `observe` what receivers and
    time do to messages. They call no verb.

    An address is the name of a queue or a topic, or "topic/Subscriptions/name"; what can be
    received from has "/$DeadLetterQueue" beside it. Letter case does not count.
    """

    def __init__(
        self,
        clock: Callable[[], int],
        tokens: Callable[[], bytes],
        record: Callable[[Record], None] | None = None,
        max_message_bytes: int = 262_144,
        observe: Callable[[Observation], None] | None = None,
    ) -> None:
        super().__init__(Namespace(clock, tokens, record, max_message_bytes, observe))
        self.max_message_bytes = max_message_bytes

    def send(self, address: str, messages: Sequence[Content]) -> None:
        """All of them or none. Those that are scheduled for later wait until then; those whose id
        was seen lately are dropped where duplicates are detected. `EntityNotFound`, `NotAllowed`,
        `EntityDisabled`, `MessageTooLarge`, `InvalidArgument`, `QuotaExceeded`."""
        now = self._wiring.agenda.now()
        self._entrance(address).send(messages, now)
        self._wiring.bell.ring()

    def schedule(self, address: str, messages: Sequence[Content]) -> list[int]:
        """As `send`; the numbers are for `cancel_scheduled` at the same address."""
        now = self._wiring.agenda.now()
        numbers = self._entrance(address).schedule(messages, now)
        self._wiring.bell.ring()
        return numbers

    def cancel_scheduled(self, address: str, sequence_numbers: Sequence[int]) -> None:
        """All of them or none. `MessageNotFound` for one that is not waiting any more."""
        self._wiring.agenda.now()
        self._entrance(address).shelf.cancel(sequence_numbers)

    def source(self, address: str) -> Source:
        """`EntityNotFound`, also for a topic: its messages are in its subscriptions."""
        found = self._namespace.sources.get(address.lower())
        if found is None:
            raise EntityNotFound(f"nothing can be received from {address}")
        return found

    def message_limit(self, address: str) -> int:
        """The most bytes that a message sent there may have."""
        return self._entrance(address).max_message_bytes

    def tick(self) -> None:
        """Do what time has brought. Verbs do so themselves: this is for when there are none."""
        self._wiring.agenda.now()

    def next_due(self) -> int | None:
        """When `tick` may have something to do next."""
        first = self._wiring.agenda.first
        return None if first == NEVER else first

    def snapshot(self) -> Iterator[Record]:
        """Records that give the same broker. To be read before the next verb."""
        return snapshot_of(self._namespace, self._wiring.agenda.now())

    def restore(self, records: Iterable[Record]) -> None:
        """Into a broker without entities. What was locked is available; nothing is recorded."""
        if self._namespace.entrances:
            raise NotAllowed("only a broker without entities is restored")
        restored(self._namespace, records)

    def _entrance(self, address: str) -> Entrance:
        found = self._namespace.entrances.get(address.lower())
        if found is not None:
            return found
        if address.lower() in self._namespace.sources:
            raise NotAllowed(f"nothing can be sent to {address}")
        raise EntityNotFound(f"there is no queue or topic {address}")
