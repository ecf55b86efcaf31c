"""A message that comes in several frames."""

from typing import NamedTuple

from servicebus_emulator.amqp import AmqpError, Transfer


class Whole(NamedTuple):
    """`payload` None: it had more bytes than may be kept."""

    delivery_id: int
    message_format: int
    is_settled: bool
    payload: bytes | None


class Parts:
    """Puts frames together, and keeps at most `limit` bytes of them. Only the first frame must say
    which delivery it is."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._first: Transfer | None = None
        self._payloads: list[bytes] = []
        self._size = 0

    def add(self, transfer: Transfer, payload: bytes) -> None:
        """A frame that is not the last; an aborted delivery is forgotten."""
        if transfer.aborted:
            self._clear()
            return
        self._first = self._first or transfer
        self._size += len(payload)
        if payload:
            self._payloads.append(payload)
        if self._size > self._limit:
            self._payloads.clear()

    def end(self, transfer: Transfer, payload: bytes) -> Whole:
        """The last frame of a delivery."""
        first = self._first or transfer
        if first.delivery_id is None:
            raise AmqpError("amqp:invalid-field", "the first transfer of a delivery needs its id")
        settled = bool(first.settled or transfer.settled)
        whole = payload if self._first is None else b"".join((*self._payloads, payload))
        is_kept = self._size + len(payload) <= self._limit
        self._clear()
        number, message_format = first.delivery_id, first.message_format or 0
        return Whole(number, message_format, settled, whole if is_kept else None)

    def _clear(self) -> None:
        self._first = None
        self._payloads.clear()
        self._size = 0
