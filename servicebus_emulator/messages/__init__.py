"""One message of Service Bus, as the bytes that a client sent.

What the user wrote is never encoded again: the bare message (properties, application properties,
body, footer) goes to receivers byte by byte, behind a header and annotations of ours.
"""

from servicebus_emulator.messages.message import Message

__all__ = ["Message"]
