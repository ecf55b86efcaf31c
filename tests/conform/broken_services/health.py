"""The two questions that whoever deploys the service asks."""

import asyncio
from collections.abc import Callable, Mapping

Probe = Callable[[], bool]


class Health:
    """Answers 200 or 503 for each path that it has a probe for."""

    def __init__(self, probes: Mapping[str, Probe]) -> None:
        self._probes = probes
        self._server: asyncio.Server | None = None

    async def open(self, port: int) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            asked = (await reader.readuntil(b"\r\n\r\n")).split()
            path = asked[1].decode() if len(asked) > 1 else ""
            writer.write(f"HTTP/1.1 {self._status(path)}\r\n".encode())
            writer.write(b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    def _status(self, path: str) -> str:
        probe = self._probes.get(path)
        if probe is None:
            return "404 Not Found"
        return "200 OK" if probe() else "503 Service Unavailable"
