"""The dead letters beside a queue or a subscription."""

from servicebus_emulator.broker.deadlines import NEVER
from servicebus_emulator.broker.entries import Entry
from servicebus_emulator.broker.settings import ReadableSettings
from servicebus_emulator.broker.source import Source
from servicebus_emulator.broker.store import Letter
from servicebus_emulator.broker.wiring import Refusal, Wiring


class DeadLetters(Source):
    """Messages come here from the source beside it, in the order in which they die."""

    def __init__(
        self, path: str, settings: ReadableSettings, wiring: Wiring, max_message_bytes: int
    ) -> None:
        super().__init__(path, settings, wiring, max_message_bytes, None)

    def receive(self, letter: Letter, moment: int) -> None:
        """Or send it on, where the settings say so and the target takes it."""
        if self._is_sent_on(letter, moment):
            return
        self.last_number += 1
        number, enqueued_at = self.last_number, letter.enqueued_at
        entry = Entry(letter.message, number, enqueued_at, NEVER, self.line, 0)
        entry.count = letter.delivery_count
        entry.dead_letter_source = letter.origin
        self._enqueue(entry)

    def _is_sent_on(self, letter: Letter, moment: int) -> bool:
        target = self.settings.forward_dead_letters_to
        if target is None:
            return False
        try:
            self._wiring.forward(target, letter.message, moment, letter.hops + 1, letter.origin)
        except Refusal:
            return False  # then it stays here
        return True
