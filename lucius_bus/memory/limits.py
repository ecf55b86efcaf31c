"""What Service Bus and its clients refuse to send."""

from lucius_bus.port import BusMessage

_LONGEST_ID = 128


def refusal(message: BusMessage, max_bytes: int) -> str | None:
    """Why the message can never be published, if so."""
    size = _size_of(message)
    if size > max_bytes:
        return f"it has {size} bytes, and {max_bytes} are the most"
    session_id, partition_key = message.session_id, message.partition_key
    if _is_too_long(message.message_id):
        return f"its message_id is longer than {_LONGEST_ID} characters"
    if session_id is not None and _is_too_long(session_id):
        return f"its session_id is longer than {_LONGEST_ID} characters"
    if partition_key is not None:
        if _is_too_long(partition_key):
            return f"its partition_key is longer than {_LONGEST_ID} characters"
        if session_id is not None and partition_key != session_id:
            return "its partition_key is not its session_id"
    return None


def _size_of(message: BusMessage) -> int:
    """Of the body, and of the properties as text; the encoding around them is not counted."""
    names, values = message.properties, message.properties.values()
    return len(message.body) + len("".join(names)) + len("".join(map(str, values)))


def _is_too_long(text: str) -> bool:
    """In UTF-16 units: one for each character of ASCII, at most two for any other."""
    if text.isascii():
        return len(text) > _LONGEST_ID
    return len(text.encode("utf-16-le")) > 2 * _LONGEST_ID
