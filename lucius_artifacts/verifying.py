"""The verification of uploads, beside the requests that ask for it.

It takes as long as reading the content does. So each is a task of its own, which those who ask for
it may wait for or not; two who ask for the same one share it. No task outlives `close`.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import timedelta

from lucius_artifacts.errors import ArtifactsError, Unavailable
from lucius_artifacts.model import Upload
from lucius_artifacts.states import UploadState
from lucius_artifacts.uploading import Uploads
from lucius_outbox.redaction import redacted

_log = logging.getLogger("lucius_artifacts")
_STOPPING = "this process is stopping: ask again"
AT_ONCE = 4


@dataclass(slots=True, eq=False)
class _Verification:
    task: asyncio.Task[Upload]
    waiting: int = 0


class Verifications:
    """`at_once` contents are read at a time, so that memory is bounded; others wait their turn."""

    def __init__(self, uploads: Uploads, at_once: int = AT_ONCE) -> None:
        self._uploads = uploads
        self._turns = asyncio.Semaphore(at_once)
        self._running: dict[str, _Verification] = {}
        self._is_closed = False

    async def complete(self, tenant_id: str, upload_id: str, patience: timedelta) -> Upload:
        """The upload when it has ended, or as it is after `patience`: then it waits to be committed
        and its verification goes on. Errors are those of `Uploads.complete`."""
        upload = await self._uploads.complete_parts(tenant_id, upload_id)
        if upload.state is UploadState.COMMITTED:
            return upload
        verification = self._running.get(upload_id) or self._start(upload)
        verification.waiting += 1
        try:
            await asyncio.wait([verification.task], timeout=patience.total_seconds())
        finally:
            verification.waiting -= 1
        return _result(verification.task) if verification.task.done() else upload

    async def dedupe(self, tenant_id: str, upload_id: str, proof: str) -> Upload:
        """As `Uploads.dedupe`, which reads the content that is there."""
        async with self._turns:
            return await self._uploads.dedupe(tenant_id, upload_id, proof)

    async def close(self) -> None:
        """Whoever waits is told to ask again, and what was verified half is verified anew then."""
        self._is_closed = True
        tasks = [each.task for each in self._running.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _start(self, upload: Upload) -> _Verification:
        if self._is_closed:
            raise Unavailable(_STOPPING)
        verification = _Verification(asyncio.create_task(self._verify(upload)))
        self._running[upload.upload_id] = verification
        verification.task.add_done_callback(lambda _: self._ended(upload.upload_id))
        return verification

    async def _verify(self, upload: Upload) -> Upload:
        async with self._turns:
            return await self._uploads.complete(upload.tenant_id, upload.upload_id)

    def _ended(self, upload_id: str) -> None:
        """An error that nobody waits for any more is told in the log; whoever asks again meets it
        again."""
        verification = self._running.pop(upload_id)
        if verification.task.cancelled():
            return
        error = verification.task.exception()
        if error is not None and not verification.waiting:
            text = redacted(f"{type(error).__name__}: {error}")
            extra = {"upload_id": upload_id, "error": text}
            _log.warning("artifact.verification_failed", extra=extra)


def _result(task: asyncio.Task[Upload]) -> Upload:
    if task.cancelled():
        raise Unavailable(_STOPPING)
    error = task.exception()
    if isinstance(error, ArtifactsError):
        raise error
    return task.result()
