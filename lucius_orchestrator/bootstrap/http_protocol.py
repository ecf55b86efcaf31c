"""HTTP/1.1 as uvicorn speaks it, with bounds on the head of a request: what the API sees begins
with the body, and a client that never ends its head would hold a connection for ever."""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_LIMIT = 64 * 1024


class BoundedHead(HttpToolsProtocol):
    """A head arrives whole within `seconds` of its first byte, or of the connection, and has at
    most `HEAD_LIMIT` bytes; otherwise the connection is closed."""

    seconds: ClassVar[float]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
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
