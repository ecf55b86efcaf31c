"""The messages of a queue, a subscription or their dead letters, and what becomes of them.

The verbs of receivers are in `source`; here are the moves that these and time make. A message is
in one place at a time (`Entry.place`), and every move that must survive a restart is recorded.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from servicebus_emulator.broker.content import Content
from servicebus_emulator.broker.deadlines import NEVER, Deadlines
from servicebus_emulator.broker.deliveries import STATE_DEFERRED
from servicebus_emulator.broker.entries import DEFERRED, LOCKED, READY, Entry, Line
from servicebus_emulator.broker.errors import EntityNotFound
from servicebus_emulator.broker.observing import Happening, Observation
from servicebus_emulator.broker.records import Changed, MessageRecord, SessionStateSet
from servicebus_emulator.broker.sessions import Session, Sessions
from servicebus_emulator.broker.settings import ACTIVE, SEND_DISABLED, ReadableSettings
from servicebus_emulator.broker.shelf import Shelf
from servicebus_emulator.broker.wiring import Refusal, Wiring

if TYPE_CHECKING:
    from servicebus_emulator.broker.dead_letters import DeadLetters

_NOTHING: Mapping[str, object] = {}
_RECEIVING = (ACTIVE, SEND_DISABLED)


class Letter(NamedTuple):
    """A message on its way to the dead letters; `origin` is where it died first."""

    message: Content
    enqueued_at: int
    delivery_count: int
    hops: int
    origin: str


class Store(Shelf):
    """`dead` is None for dead letters themselves: they neither expire nor run out of deliveries,
    and are not taken by session."""

    def __init__(
        self,
        path: str,
        settings: ReadableSettings,
        wiring: Wiring,
        max_message_bytes: int,
        dead: "DeadLetters | None",
    ) -> None:
        super().__init__(path, wiring)
        self.settings = settings
        self.dead = dead
        self.max_message_bytes = max_message_bytes
        self.requires_session = dead is not None and settings.requires_session
        self.by_session = Sessions(self, wiring) if self.requires_session else None
        self.is_deleted = False
        self.accessed_at = 0
        self._longest_ttl: int | None = None
        self._is_plain = True
        self._locked: dict[bytes, Entry] = {}
        self._locks: Deadlines[Entry] = Deadlines(_is_locked_until)
        self._expiries: Deadlines[Entry] = Deadlines(_may_expire)
        self.update(settings, None)

    def update(self, settings: ReadableSettings, topic_ttl: int | None) -> None:
        """`topic_ttl`: what the topic gives its messages at most."""
        self.settings = settings
        if self.dead is None:
            return
        self.dead.update(settings, None)
        limits = [ttl for ttl in (settings.default_ttl, topic_ttl) if ttl is not None]
        self._longest_ttl = min(limits, default=None)
        self._is_plain = settings.forward_to is None and self.by_session is None

    def now(self) -> int:
        if self.is_deleted:
            raise EntityNotFound(f"{self.path} was deleted")
        return self._wiring.agenda.now()

    def can_take(self) -> bool:
        return not self.is_deleted and self.settings.status in _RECEIVING

    def arrive(
        self, message: Content, moment: int, hops: int = 0, origin: str | None = None
    ) -> None:
        line = self.line if self._is_plain else self._line_for(message, moment, hops)
        if line is None:
            return
        ttl, longest = message.ttl, self._longest_ttl
        if longest is not None and (ttl is None or ttl > longest):
            ttl = longest
        self.last_number += 1
        expires_at = NEVER if ttl is None else moment + ttl
        entry = Entry(message, self.last_number, moment, expires_at, line, hops)
        entry.dead_letter_source = origin
        self._enqueue(entry)

    def refuse(self, message: Content, moment: int, hops: int, refusal: Refusal) -> None:
        """A message that cannot lie here becomes a dead letter at once."""
        if self.dead is not None:
            changed = message.with_properties(_reasons(refusal.reason, refusal.description))
            self.dead.receive(Letter(changed, moment, 0, hops, self.path), moment)

    def give_back(self, entry: Entry, moment: int) -> None:
        self._unlock(entry)
        self._return(entry, moment)

    def fail(self, entry: Entry, moment: int, properties: Mapping[str, object] = _NOTHING) -> None:
        self._unlock(entry)
        entry.count += 1
        if self.dead is not None and entry.count >= self.settings.max_delivery_count:
            description = f"it was delivered {entry.count} times and never completed"
            self.bury(entry, moment, "MaxDeliveryCountExceeded", description, properties)
            return
        self._change(entry, properties)
        self._return(entry, moment)

    def defer(self, entry: Entry, properties: Mapping[str, object]) -> None:
        """The delivery counts."""
        self._unlock(entry)
        entry.count += 1
        entry.place = DEFERRED
        if entry.state != STATE_DEFERRED:
            entry.state = STATE_DEFERRED
            self.aside[STATE_DEFERRED] += 1
        self._change(entry, properties)

    def bury(
        self,
        entry: Entry,
        moment: int,
        reason: str | None,
        description: str | None,
        properties: Mapping[str, object] = _NOTHING,
    ) -> None:
        """Move it, with why, to the dead letters."""
        if self.dead is None:
            raise AssertionError("dead letters do not die")
        self._seen(Happening.DEAD_LETTERED, entry, reason)
        changes = {**properties, **_reasons(reason, description)}
        message = entry.message.with_properties(changes) if changes else entry.message
        self.remove(entry)
        origin = entry.dead_letter_source or self.path
        letter = Letter(message, entry.enqueued_at, entry.count, entry.hops, origin)
        self.dead.receive(letter, moment)

    def expire(self, entry: Entry, moment: int) -> None:
        self._seen(Happening.EXPIRED, entry)
        if self.settings.dead_letter_on_expiry:
            description = "its time to live was over before it was received"
            self.bury(entry, moment, "TTLExpiredException", description)
        else:
            self.remove(entry)

    def forward_all(self, moment: int) -> None:
        """What lies here when the settings begin to send everything elsewhere goes there too."""
        target = self.settings.forward_to
        if target is None:
            return
        while (entry := self.line.pop()) is not None:
            entry.place = LOCKED  # it is out of the line
            try:
                self._wiring.forward(target, entry.message, moment, entry.hops + 1, None)
            except Refusal as refusal:
                self.bury(entry, moment, refusal.reason, refusal.description)
            else:
                self.remove(entry)

    def advance(self, moment: int) -> None:
        while (entry := self._locks.pop(moment)) is not None:
            self.fail(entry, moment)
            self._seen(Happening.LOCK_LOST, entry)
        if self.by_session is not None:
            self.by_session.expire(moment)
        while (entry := self._expiries.pop(moment)) is not None:
            if entry.place == READY:  # one that is locked expires when it is given back
                self.expire(entry, moment)
        super().advance(moment)

    def next_due(self) -> int:
        held = NEVER if self.by_session is None else self.by_session.next_due()
        return min(self._locks.first(), held, self._expiries.first(), super().next_due())

    def apply(self, record: MessageRecord) -> None:
        if not isinstance(record, SessionStateSet):
            super().apply(record)
        elif self.by_session is not None:
            self.by_session.restore_state(record.session_id, record.state, record.updated_at)

    def records(self) -> Iterator[MessageRecord]:
        yield from super().records()
        for session in self.by_session.all() if self.by_session is not None else ():
            if session.state is not None:
                yield SessionStateSet(
                    self.path, session.session_id, session.state, session.updated_at
                )

    def delete(self) -> None:
        super().delete()
        self.is_deleted = True
        self._locked.clear()
        self._locks.clear()
        self._expiries.clear()
        self.line.waiters.clear()
        if self.by_session is not None:
            self.by_session.close()

    def _enqueue(self, entry: Entry) -> None:
        self.entries[entry.number] = entry
        self.size_bytes += entry.message.size
        if self._wiring.record is not None:
            self._wiring.record(self._enqueued(entry))
        if entry.expires_at != NEVER:
            self._expiries.add(entry.expires_at, entry.number, entry)
            self.announce(entry.expires_at)
        line = entry.line
        line.new.append(entry)
        if line is not self.line:
            self._joined(entry)
        if line.waiters.calls:
            line.waiters.ring()

    def _line_for(self, message: Content, moment: int, hops: int) -> Line | None:
        """None: it went elsewhere."""
        if self.settings.forward_to is not None:
            self._send_on(self.settings.forward_to, message, moment, hops)
            return None
        if self.by_session is None:
            return self.line
        if message.session_id is None:
            refusal = Refusal("Session ID is null", "the entity takes sessions only")
            self.refuse(message, moment, hops, refusal)
            return None
        return self.by_session.of(message.session_id)

    def _send_on(self, target: str, message: Content, moment: int, hops: int) -> None:
        try:
            self._wiring.forward(target, message, moment, hops + 1, None)
        except Refusal as refusal:
            self.refuse(message, moment, hops, refusal)

    def _seen(self, what: Happening, entry: Entry, reason: str | None = None) -> None:
        if self._wiring.observe is not None:
            self._wiring.observe(
                Observation(what, self.path, entry.number, entry.message, entry.count, reason)
            )

    def _unlock(self, entry: Entry) -> None:
        token = entry.token
        if token is not None:
            entry.token = None
            del self._locked[token]
            if entry.line is not self.line:
                del entry.line.held[token]

    def _return(self, entry: Entry, moment: int) -> None:
        if entry.state == STATE_DEFERRED:
            entry.place = DEFERRED
        elif entry.expires_at <= moment:
            self.expire(entry, moment)
        else:
            entry.place = READY
            entry.line.give_back(entry)
            entry.line.waiters.ring()

    def _change(self, entry: Entry, properties: Mapping[str, object]) -> None:
        if properties:
            self.size_bytes -= entry.message.size
            entry.message = entry.message.with_properties(properties)
            self.size_bytes += entry.message.size
        if self._wiring.record is not None:
            message = entry.message if properties else None
            self._wiring.record(Changed(self.path, entry.number, entry.state, entry.count, message))

    def _settle_in(self, entry: Entry) -> None:
        super()._settle_in(entry)
        session_id = entry.message.session_id
        if self.by_session is not None and session_id is not None:
            entry.line = self.by_session.of(session_id)
        if entry.place == READY:
            entry.line.new.append(entry)
            if entry.expires_at != NEVER:
                self._expiries.add(entry.expires_at, entry.number, entry)
        if entry.line is not self.line:
            self._joined(entry)

    def _joined(self, entry: Entry) -> None:
        if isinstance(entry.line, Session) and self.by_session is not None:
            entry.line.entries[entry.number] = entry
            self.by_session.rest(entry.line)

    def _left(self, entry: Entry) -> None:
        if isinstance(entry.line, Session) and self.by_session is not None:
            del entry.line.entries[entry.number]
            self.by_session.rest(entry.line)


def _reasons(reason: str | None, description: str | None) -> dict[str, object]:
    why = {"DeadLetterReason": reason, "DeadLetterErrorDescription": description}
    return {name: text for name, text in why.items() if text is not None}


def _is_locked_until(entry: Entry, when: int) -> bool:
    return entry.token is not None and entry.locked_until == when


def _may_expire(entry: Entry, when: int) -> bool:  # noqa: ARG001 - its time never changes
    return entry.place in (READY, LOCKED)
