"""What a team writes: the function that publishes. And what the dispatcher makes of its answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import timedelta

from lucius_outbox.errors import Undeliverable
from lucius_outbox.message import Claimed, Failure

Publish = Callable[[Sequence[Claimed]], Awaitable[Iterable[Failure] | None]]
"""Publishes a batch and returns what failed; None or nothing named: all of it was published.

An exception means that nothing is known to be published: the whole batch is tried again, or, if it
is Undeliverable, is dead. Messages may come more than once, so whoever receives them must recognise
`dedupe_key` (or `id`).
"""


def one_by_one(publish: Callable[[Claimed], Awaitable[None]]) -> Publish:
    """A publisher of batches from one of single messages, which it runs side by side."""

    async def attempt(claimed: Claimed) -> Failure | None:
        try:
            await publish(claimed)
        except Exception as error:
            return failure_of(claimed, error)
        return None

    async def publish_all(claims: Sequence[Claimed]) -> list[Failure]:
        outcomes = await asyncio.gather(*map(attempt, claims))
        return [outcome for outcome in outcomes if outcome is not None]

    return publish_all


async def failures_of(
    publish: Publish, claims: Sequence[Claimed], timeout: timedelta
) -> list[Failure]:
    """Let the team's function publish; whatever it does, the answer is a list of failures."""
    try:
        async with asyncio.timeout(timeout.total_seconds()) as limit:
            return _checked(await publish(claims))
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        return [failure_of(claimed, error) for claimed in claims]
    except Exception as error:
        cause = TimeoutError(f"not published in {timeout}") if limit.expired() else error
        return [failure_of(claimed, cause) for claimed in claims]


def _checked(answer: Iterable[Failure] | None) -> list[Failure]:
    failures = [] if answer is None else list(answer)
    for failure in failures:
        if not isinstance(failure, Failure):
            raise TypeError(f"publish must return Failures or None, not {type(failure).__name__}")
    return failures


def is_cancelled() -> bool:
    """Whether somebody has cancelled this task, even if the cancellation was swallowed since."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def failure_of(claimed: Claimed, error: BaseException) -> Failure:
    text = f"{type(error).__name__}: {error}"
    return Failure(claimed, text, permanent=isinstance(error, Undeliverable))
