"""How the storage account is spoken to: how long, how often, over how many connections."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from azure.core.pipeline.policies import RequestHistory
from azure.core.pipeline.transport import HttpResponse
from azure.storage.blob import BlobServiceClient, ExponentialRetry
from requests import Session
from requests.adapters import HTTPAdapter

from lucius_azure.storage import Opened, StorageAccount, open_blocking_blobs

_CONNECTIONS = 1024  # at most, as many as a service can have slots
_LONGEST_WAIT = 30.0
_JITTER = 0.2


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for a connection, for an answer, and before each further try. What is tried again
    is what may pass: a broken connection, a timeout, 408 and 5xx."""

    connect: float = 5.0
    answer: float = 30.0
    waits: tuple[float, ...] = (0.5, 2.0, 5.0)


AT_ONCE: dict[str, Any] = {"connection_timeout": 2.0, "read_timeout": 2.0, "retry_total": 0}
"""Options of a request whose asker does not wait: it is asked again soon in any case."""


def open_account(
    account: StorageAccount, patience: Patience | None = None
) -> Opened[BlobServiceClient]:
    """Nothing is connected yet. ValueError for a connection string that cannot be read."""
    patience = patience or Patience()
    session = Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(pool_maxsize=_CONNECTIONS, max_retries=0))
    return open_blocking_blobs(
        account,
        session=session,
        retry_policy=Retries(patience.waits),
        connection_timeout=patience.connect,
        read_timeout=patience.answer,
    )


class Retries(ExponentialRetry):
    """The client's own ones wait a quarter of a minute at first, and not as long as a busy service
    asks them to (`Retry-After`)."""

    def __init__(
        self, waits: tuple[float, ...], chance: Callable[[], float] = random.random
    ) -> None:
        tries = len(waits)
        super().__init__(
            retry_total=tries, retry_connect=tries, retry_read=tries, retry_status=tries
        )
        self._waits = waits
        self._chance = chance

    def get_backoff_time(self, settings: dict[str, Any]) -> float:
        planned: float = self._waits[settings["count"] - 1]
        wait = planned * (1 + _JITTER * (2 * self._chance() - 1))
        answer = _last_answer(settings)
        asked = 0.0 if answer is None else _asked(answer)
        return max(wait, min(asked, _LONGEST_WAIT))

    def sleep(self, settings: dict[str, Any], transport: Any) -> None:
        """Nobody reads the answer any more, and its connection would wait for that."""
        answer = _last_answer(settings)
        if answer is not None:
            answer.internal_response.close()
        transport.sleep(self.get_backoff_time(settings))


def _last_answer(settings: dict[str, Any]) -> HttpResponse | None:
    history: Sequence[RequestHistory[Any, HttpResponse]] = settings["history"]
    return history[-1].http_response if history else None


def _asked(answer: HttpResponse) -> float:
    """Seconds; the service never gives a date."""
    text = answer.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdigit() else 0.0
