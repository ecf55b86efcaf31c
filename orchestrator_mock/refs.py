"""Refs that the mock serves over HTTP: it counts the reads, and can hold them or let them fail."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from aiohttp import web

from orchestrator_mock.faults import Fault, Faults, Place
from orchestrator_mock.recording import Recording, What

_PART = 1024


@dataclass(slots=True, eq=False)
class ServedRef:
    """`open_reads` are those that were asked for and have not ended."""

    name: str
    uri: str
    content: bytes
    media_type: str
    job_id: str
    reads: int = 0
    open_reads: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    def hold(self) -> None:
        """Reads from now on wait until `release`."""
        self.gate.clear()

    def release(self) -> None:
        self.gate.set()

    def artifact(self) -> dict[str, Any]:
        """As a step before would have named it."""
        return {
            "name": self.name,
            "uri": self.uri,
            "sha256": sha256(self.content).hexdigest(),
            "size": len(self.content),
            "media_type": self.media_type,
        }


class RefServer:
    def __init__(self, faults: Faults, recording: Recording) -> None:
        self._faults = faults
        self._recording = recording
        self._refs: dict[str, ServedRef] = {}
        self._runner: web.AppRunner | None = None
        self.port = 0
        self.defects: list[str] = []
        """What went wrong with the mock itself."""

    @property
    def refs(self) -> Mapping[str, ServedRef]:
        """By the path below `/refs/`."""
        return self._refs

    async def open(self) -> None:
        app = web.Application()
        app.router.add_get("/refs/{path:.+}", self._serve)
        # A client that leaves while it is held has ended its read.
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self._runner, self.port = runner, runner.addresses[0][1]

    async def close(self) -> None:
        for ref in self._refs.values():
            ref.release()
        if self._runner is not None:
            await self._runner.cleanup()

    def serve(
        self,
        name: str,
        content: bytes,
        *,
        job_id: str,
        media_type: str = "application/octet-stream",
        held: bool = False,
    ) -> ServedRef:
        path = f"{job_id}/{len(self._refs)}/{name}"
        uri = f"http://127.0.0.1:{self.port}/refs/{path}"
        ref = self._refs[path] = ServedRef(name, uri, content, media_type, job_id)
        if not held:
            ref.release()
        return ref

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        ref = self._refs.get(request.match_info["path"])
        if ref is None:
            raise web.HTTPNotFound
        if request.method == "HEAD":
            return web.Response(headers=_headers(ref))
        if _is_first_part(request):
            ref.reads += 1
        ref.open_reads += 1
        self._recording.add(What.READ, job_id=ref.job_id, detail=f"of {ref.name}")
        try:
            await ref.gate.wait()
            return await self._answer(ref, request)
        except OSError:
            raise  # the client has left
        except Exception as error:
            self.defects.append(f"{ref.name} could not be served: {error!r}")
            raise
        finally:
            ref.open_reads -= 1
            self._recording.add(What.READ_ENDED, job_id=ref.job_id, detail=f"of {ref.name}")

    async def _answer(self, ref: ServedRef, request: web.Request) -> web.StreamResponse:
        fault = self._faults.take(Place.STORAGE, ref.job_id)
        if fault is None:
            return _content(ref, request)
        self._recording.add(What.FAULT, job_id=ref.job_id, detail=fault.name)
        if fault.name == "storage-503":
            return web.Response(status=HTTPStatus.SERVICE_UNAVAILABLE)
        if fault.name == "storage-slow":
            await asyncio.sleep(fault.seconds)
            return _content(ref, request)
        return await _broken_off(ref, fault, request)


def _is_first_part(request: web.Request) -> bool:
    """A download that goes on where it was is the same read."""
    return request.headers.get("Range", "bytes=0-").startswith("bytes=0-")


def _headers(ref: ServedRef) -> dict[str, str]:
    return {
        "Content-Type": ref.media_type,
        "Content-Length": str(len(ref.content)),
        "Accept-Ranges": "bytes",
        "ETag": f'"{sha256(ref.content).hexdigest()}"',
    }


def _content(ref: ServedRef, request: web.Request) -> web.StreamResponse:
    total = len(ref.content)
    try:
        part = request.http_range
    except ValueError:
        return _no_such_part(total)
    if part.start is None and part.stop is None:
        return web.Response(body=ref.content, headers=_headers(ref))
    start, stop, _ = part.indices(total)
    if start >= stop:
        return _no_such_part(total)
    shown = f"bytes {start}-{stop - 1}/{total}"
    headers = {**_headers(ref), "Content-Length": str(stop - start), "Content-Range": shown}
    return web.Response(
        status=HTTPStatus.PARTIAL_CONTENT, body=ref.content[start:stop], headers=headers
    )


def _no_such_part(total: int) -> web.Response:
    status = HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE
    return web.Response(status=status, headers={"Content-Range": f"bytes */{total}"})


async def _broken_off(ref: ServedRef, _fault: Fault, request: web.Request) -> web.StreamResponse:
    """It promises more than it gives."""
    promised = len(ref.content) + _PART
    response = web.StreamResponse(headers={**_headers(ref), "Content-Length": str(promised)})
    await response.prepare(request)
    await response.write(ref.content[: len(ref.content) // 2])
    if request.transport is not None:
        request.transport.abort()
    return response
