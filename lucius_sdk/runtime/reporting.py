"""Sending a stored RESULT until it is answered, and remembering that it was."""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import TypeVar

from lucius_contract.messages import MessageType
from lucius_sdk.idempotency_store import HeldClaim, StoreUnavailable, StoreUnusable
from lucius_sdk.replies.answers import Verdict
from lucius_sdk.runtime.interruption import Interruption
from lucius_sdk.runtime.parts import Parts

_log = logging.getLogger("lucius_sdk")
T = TypeVar("T")

_PAUSE = 0.5


async def report(
    parts: Parts, claim: HeldClaim, interruption: Interruption, until: datetime
) -> None:
    """`until` is when a token that is not accepted is given up. `StepStopped`
    leaves the RESULT to whoever has the claim next."""
    result = claim.result
    assert result is not None
    parts.metrics.unreported(1)
    try:
        with interruption:
            answer = await parts.results.report(result.address, result.body, until)
    finally:
        parts.metrics.unreported(-1)
    parts.metrics.reply(MessageType.RESULT, answer.verdict)
    if answer.verdict not in (Verdict.APPLIED, Verdict.SENT, Verdict.DUPLICATE):
        extra = {"jobId": claim.key.job_id, "stepId": claim.key.step_id, "why": answer.detail}
        _log.warning("result.not_applied", extra=extra | {"verdict": answer.verdict})
    await trying(parts, interruption, claim.report)


async def trying(parts: Parts, interruption: Interruption, verb: Callable[[], Awaitable[T]]) -> T:
    """The store may be away for a while: it is tried until it is back, or until we are stopped."""
    while True:
        try:
            return await verb()
        except (StoreUnavailable, StoreUnusable) as error:
            _log.warning("store.unavailable", extra={"error": str(error)})
        with interruption:
            await parts.clock.sleep(_PAUSE)
