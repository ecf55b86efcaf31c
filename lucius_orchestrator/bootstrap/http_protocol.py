"""HTTP/1.1 as uvicorn speaks it, with bounds on the head of a request, fewer system calls and fewer
copies.

What the API sees begins with the body; a client that never ends its head would hold a connection
for ever.
"""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_LIMIT = 64 * 1024


class JoinedWrites(asyncio.Transport):
    """A transport that writes once in a turn of the loop: the head and the body of an answer leave
    in one system call."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._held: list[bytes] = []

    def write(self, data: "bytes | bytearray | memoryview[Any]") -> None:
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(bytes(data))

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._held.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def _flush(self) -> None:
        if self._held:
            held, self._held = self._held, []
            self._transport.write(b"".join(held))


class BoundedHead(HttpToolsProtocol):
    """A head arrives whole within `seconds` of its first byte, or of the connection, and has at
    most `HEAD_LIMIT` bytes; otherwise the connection is closed."""

    seconds: ClassVar[float]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(JoinedWrites(transport, self.loop))
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._deadline is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT:
                self._end()
                self.send_400_response("The head of the request is too large.")

    def on_message_begin(self) -> None:
        if self._deadline is None:
            self._begin()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._end()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """What comes when the application has taken all that there was is handed on as it is:
        uvicorn would copy it to a buffer, and from there once more. With large bodies that is a
        quarter of the time. What comes on top of it is collected as uvicorn does, since a body may
        come byte by byte."""
        held = self.cycle.body
        if not held:
            self.cycle.body = b""  # type: ignore[assignment]
        elif isinstance(held, bytes):
            self.cycle.body = bytearray(held)
        super().on_body(body)

    def _begin(self) -> None:
        self._head_bytes = 0
        self._deadline = self.loop.call_later(self.seconds, self._too_slow)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _too_slow(self) -> None:
        self._deadline = None
        self.transport.close()


def bounded_head(within: float) -> type[BoundedHead]:
    """The protocol with its time, as uvicorn wants it: it makes one for each connection."""
    return type("BoundedHead", (BoundedHead,), {"seconds": within})
