"""The parts of an upload, brought by several threads that hold one chunk each."""

import threading
from collections import deque
from collections.abc import Iterator, Sequence

from lucius_artifacts.client.answers import Session, SignedPart
from lucius_artifacts.client.api import Api
from lucius_artifacts.client.errors import (
    Conflict,
    ContentChanged,
    Denied,
    Gone,
    NotFound,
    Unavailable,
)
from lucius_artifacts.client.patience import Patience
from lucius_artifacts.client.progress import Meter
from lucius_artifacts.client.sources import CHUNK, Source
from lucius_artifacts.client.storage import Storage

BATCH = 64
"""Parts that are signed at once: their addresses expire, and the last of them must wait."""
_FAREWELL = 2.0


class SessionOver(Exception):
    """Nothing can be brought to it any more: it expired, or somebody aborted it."""


class _Stopped(Exception):
    """Another part cannot be brought, so this one need not be."""


class Queue:
    """Parts to bring, signed a batch at a time."""

    def __init__(self, api: Api, upload_id: str, numbers: Sequence[int]) -> None:
        self._api = api
        self._upload_id = upload_id
        self._numbers = deque(numbers)
        self._signed: deque[SignedPart] = deque()
        self._lock = threading.Lock()

    def take(self) -> SignedPart | None:
        with self._lock:
            if not self._signed and self._numbers:
                batch = [self._numbers.popleft() for _ in range(min(BATCH, len(self._numbers)))]
                self._signed.extend(self.sign(batch))
            return self._signed.popleft() if self._signed else None

    def sign(self, numbers: Sequence[int]) -> list[SignedPart]:
        try:
            return self._api.sign(self._upload_id, numbers)
        except (Conflict, Gone, NotFound) as error:
            raise SessionOver from error


class Parts:
    """All that one session misses of one source."""

    def __init__(
        self,
        storage: Storage,
        queue: Queue,
        session: Session,
        source: Source,
        meter: Meter,
        patience: Patience,
    ) -> None:
        self._storage = storage
        self._queue = queue
        self._session = session
        self._source = source
        self._meter = meter
        self._patience = patience
        self._stop = threading.Event()
        self._errors: list[BaseException] = []

    def bring(self, workers: int) -> None:
        """The first error of any thread, once all have stopped. Where one thread is enough it is
        the caller's."""
        if workers <= 1:
            self._work()
            return
        # Daemons: whoever is interrupted does not wait for a connection that hangs.
        threads = [threading.Thread(target=self._try_to_work, daemon=True) for _ in range(workers)]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            self._stop.set()
            for thread in threads:
                thread.join(_FAREWELL / workers)
            raise
        if self._errors:
            raise self._errors[0]

    def _try_to_work(self) -> None:
        try:
            self._work()
        except _Stopped:
            pass
        except BaseException as error:
            self._errors.append(error)
            self._stop.set()

    def _work(self) -> None:
        while not self._stop.is_set() and (part := self._queue.take()) is not None:
            self._bring(part)

    def _bring(self, part: SignedPart) -> None:
        failures = 0
        while True:
            try:
                return self._put(part)
            except (Conflict, Gone, NotFound) as error:
                raise SessionOver from error
            except (Denied, Unavailable) as error:
                failures += 1
                if failures >= self._patience.tries:
                    raise
                part = self._after(part, error, failures)

    def _after(self, part: SignedPart, error: Denied | Unavailable, failures: int) -> SignedPart:
        """The part, to be tried again. An address that was refused has expired; and a storage that
        refuses what it has not read breaks the connection, perhaps before its answer is heard."""
        if isinstance(error, Unavailable):
            self._patience.pause(self._patience.delay(failures, error), self._stop)
            if error.answer is not None:
                return part
        return self._queue.sign([part.number])[0]

    def _put(self, part: SignedPart) -> None:
        sent = _Sent(self._meter)
        try:
            body = self._body(part.number, sent)
            self._storage.put(part, self._session.size_of(part.number), body)
        except BaseException:
            sent.take_back()
            raise

    def _body(self, number: int, sent: "_Sent") -> Iterator[bytes]:
        left = self._session.size_of(number)
        with self._source.open_at(self._session.offset_of(number)) as stream:
            while left:
                if self._stop.is_set():
                    raise _Stopped
                chunk = stream.read(min(CHUNK, left))
                if not chunk:
                    raise ContentChanged(self._source.name, "it is shorter than it was")
                left -= len(chunk)
                yield chunk
                sent.count(len(chunk))


class _Sent:
    """The bytes of one try at one part."""

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self._bytes = 0

    def count(self, more: int) -> None:
        self._bytes += more
        self._meter.count(more)

    def take_back(self) -> None:
        self._meter.count(-self._bytes)
