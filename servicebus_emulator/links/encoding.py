"""From what the broker hands out to what a peer reads."""

from servicebus_emulator.broker import Delivery, Peeked
from servicebus_emulator.messages import Message


def encoded(given: Delivery | Peeked) -> bytes:
    """All messages of this broker came in by `Message`."""
    message = given.message
    assert isinstance(message, Message)
    return message.encoded(
        sequence_number=given.sequence_number,
        enqueued_at=given.enqueued_at,
        delivery_count=given.delivery_count,
        locked_until=given.locked_until,
        state=given.state,
        dead_letter_source=given.dead_letter_source,
    )
