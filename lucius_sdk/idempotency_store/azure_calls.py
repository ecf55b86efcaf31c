"""The calls of a store to Azure Storage: tried again while there is patience, and no error of its
client leaves."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from http import HTTPStatus
from typing import Protocol, TypeVar

from azure.core.exceptions import AzureError, HttpResponseError

from lucius_azure.faults import asked_to_wait, is_forbidden, is_passing, told
from lucius_sdk.idempotency_store.errors import StoreError, StoreUnavailable, StoreUnusable

PATIENCE = timedelta(seconds=5)
PURGE_AFTER = 100
"""Writes after which one of the 256 buckets is looked through. With three or four writes for a
step, all buckets together hold some 8,000 records that could be gone, however many are kept."""

_FIRST_PAUSE = 0.05  # seconds; doubled each time
_LONGEST_PAUSE = 1.0
_REFUSALS = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)

Chance = Callable[[], float]
"""Gives numbers from 0 to 1."""

T = TypeVar("T")


class _Closing(Protocol):
    async def close(self) -> None: ...


class Refused(Exception):
    """What is stored is not what the call builds on. Perhaps since it was done already, by an
    earlier try whose answer was lost: ours, or one of the HTTP client, which repeats a PUT by
    itself, and in silence, when its connection breaks. So whoever wrote looks for its token.

    `is_absent`: there is nothing, or not even the place for it.
    """

    def __init__(self, *, is_absent: bool) -> None:
        super().__init__()
        self.is_absent = is_absent


class Verb:
    """One verb of a store under way."""

    def __init__(self, service: str, chance: Chance) -> None:
        self._service = service
        self._chance = chance
        self._last = ""

    async def ask(self, call: Callable[[], Awaitable[T]]) -> T:
        """The answer. A call that met a passing fault, or had an answer that nobody can read, is
        made again, whether it was done or not."""
        for failures in itertools.count():
            try:
                return await call()
            except Exception as error:
                if isinstance(error, AzureError) and not is_passing(error):
                    # Without the error itself: what the service says may repeat a signature.
                    raise self._translated(error, is_doubtful=failures > 0) from None
                self._last = told(error)
                await asyncio.sleep(_pause(failures, asked_to_wait(error), self._chance()))
        raise AssertionError("tries are never used up")

    async def make(self, call: Callable[[], Awaitable[object]], what: str) -> None:
        """What is missing, unless another process has made it meanwhile."""
        try:
            with suppress(Refused):
                await self.ask(call)
        except StoreUnusable as error:
            raise StoreUnusable(f"{what} is missing and cannot be made. {error}") from None

    def out_of_patience(self, seconds: float) -> StoreUnavailable:
        last = f" (the last try: {self._last})" if self._last else ""
        return StoreUnavailable(f"{self._service} gave no answer within {seconds:g} s{last}")

    def _translated(self, error: AzureError, *, is_doubtful: bool) -> Refused | StoreError:
        status = error.status_code if isinstance(error, HttpResponseError) else None
        if status in _REFUSALS:
            return Refused(is_absent=status == HTTPStatus.NOT_FOUND)
        said = f"{self._service}: {told(error)}"
        if is_doubtful:
            return StoreUnavailable(said)
        return StoreUnusable(f"{said}. {_RIGHTS}" if is_forbidden(error) else said)


class Calls:
    """Of one store, until it is closed. `client` is closed with it."""

    def __init__(self, client: _Closing, service: str, patience: timedelta, chance: Chance) -> None:
        self._client = client
        self._service = service
        self._patience = patience.total_seconds()
        self._chance = chance
        self._under_way = 0
        self._is_idle = asyncio.Event()
        self._is_idle.set()
        self._writes = PURGE_AFTER  # the first purge is due at once
        self._purge: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def verb(self) -> AsyncIterator[Verb]:
        """All calls of a verb share its patience. Closing waits for its end."""
        if self._closing is not None:
            raise StoreUnavailable("the store is closed")
        verb = Verb(self._service, self._chance)
        self._under_way += 1
        self._is_idle.clear()
        try:
            async with asyncio.timeout(self._patience):
                yield verb
        except TimeoutError:
            raise verb.out_of_patience(self._patience) from None
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._is_idle.set()

    def written(self, purge: Callable[[], Coroutine[None, None, None]]) -> None:
        """A write has happened. Every so manieth begins a purge, unless one is under way. Nobody
        waits for it, and closing stops it."""
        self._writes += 1
        if self._writes >= PURGE_AFTER and not self.is_purging:
            self._writes = 0
            self._purge = asyncio.create_task(purge())

    @property
    def is_purging(self) -> bool:
        return self._purge is not None and not self._purge.done()

    async def close(self) -> None:
        if self._closing is None:
            self._closing = asyncio.create_task(self._close())
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        if self._purge is not None:
            self._purge.cancel()
            await asyncio.wait([self._purge])
        await self._is_idle.wait()
        await self._client.close()


async def together(calls: Iterable[Awaitable[T]]) -> list[T]:
    """Their answers, once all have come to an end; the first error if there was one."""
    answers: list[T] = []
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome
        answers.append(outcome)
    return answers


def _pause(failures: int, asked: float | None, chance: float) -> float:
    """In seconds, of which chance takes away up to one half. Who asks for more time gets it, and up
    to a quarter more, so that those who were sent away together do not come back together."""
    pause = min(_FIRST_PAUSE * 2.0**failures, _LONGEST_PAUSE) * (1 - chance / 2)
    return pause if asked is None else max(pause, asked * (1 + chance / 4))


_RIGHTS = (
    "The account refuses the key, the identity, its rights or the network that it is asked from."
    " An identity needs the role Storage Table Data Contributor or Storage Blob Data Contributor; a"
    " shared access signature needs the rights to read, write, delete, list, add, create and update"
)
