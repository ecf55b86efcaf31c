"""One request and its answer, whatever the way there."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from lucius_sdk.replies.targets import Target

Header = tuple[bytes, bytes]

ANSWER_LIMIT = 64 * 1024
"""Bytes of an answer that are read; one that goes on is not an orchestrator's."""


class Answered(NamedTuple):
    """`body` is empty if it was too long to be an answer."""

    status: int
    body: bytes
    retry_after: str | None


class ExchangeFailed(Exception):
    """There is no whole answer. Says why, without address and token, and so do those behind it."""


class Exchange(Protocol):
    """Belongs to one event loop."""

    async def post(self, target: Target, headers: Sequence[Header], body: bytes) -> Answered:
        """`ExchangeFailed`. Cancelled, it leaves no connection half-way through an answer."""

    async def close(self) -> None:
        """What is under way is cut off."""
