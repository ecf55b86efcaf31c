"""RESULTs that somebody stored and did not live to report.

Usually the message comes again and brings somebody to them. It does not if it expired meanwhile, or
was delivered too often; then only the store knows of them. So the store is looked through now and
then, and what was left there is sent.
"""

import asyncio
import logging
from datetime import datetime, timedelta

from lucius_sdk.context import StopReason
from lucius_sdk.idempotency_store import (
    DedupStore,
    HeldClaim,
    StepKey,
    StoreError,
)
from lucius_sdk.runtime.interruption import Interruption, StepStopped
from lucius_sdk.runtime.parts import Parts
from lucius_sdk.runtime.reporting import report

_log = logging.getLogger("lucius_sdk")

PAUSE = 30.0
_AT_ONCE = 50
_CLAIM = timedelta(seconds=60)


class Leftovers:
    """Each is sent beside the others: one whose orchestrator is gone for good holds up nothing."""

    def __init__(self, parts: Parts, store: DedupStore) -> None:
        self._parts = parts
        self._store = store
        self._interruptions: dict[StepKey, Interruption] = {}
        self._reports: set[asyncio.Task[None]] = set()
        self._is_stopped = False

    async def run(self) -> None:
        async with asyncio.TaskGroup() as reporting:
            while not self._is_stopped:
                for key in await self._found():
                    self._interruptions[key] = Interruption()
                    sending = reporting.create_task(self._report(key))
                    self._reports.add(sending)
                    sending.add_done_callback(self._reports.discard)
                await self._parts.clock.sleep(PAUSE)

    def stop(self) -> None:
        self._is_stopped = True
        for interruption in self._interruptions.values():
            interruption.stop(StopReason.SHUTTING_DOWN)

    async def ended(self) -> None:
        """Wait until what was adopted is reported or, after `stop`, released."""
        while self._reports:
            await asyncio.wait(self._reports)

    async def _found(self) -> list[StepKey]:
        before = self._parts.clock.now() - timedelta(seconds=self._parts.skew)
        try:
            keys = await self._store.lapsed_results(before, _AT_ONCE)
        except StoreError as error:
            _log.warning("store.unavailable", extra={"error": str(error)})
            return []
        if self._is_stopped:
            return []
        return [key for key in keys if key not in self._interruptions]

    async def _report(self, key: StepKey) -> None:
        try:
            claimed = await self._parts.claims.adopt(key, self._until())
            if claimed is not None:
                await self._send(claimed.claim, self._interruptions[key])
        except StoreError as error:
            _log.warning("store.unavailable", extra={"error": str(error)})
        except Exception:
            _log.exception("step.broken", extra={"jobId": key.job_id, "stepId": key.step_id})
        finally:
            del self._interruptions[key]

    async def _send(self, claim: HeldClaim, interruption: Interruption) -> None:
        keeping = asyncio.create_task(self._keep(claim, interruption))
        try:
            await report(self._parts, claim, interruption, claim.record.deadline)
            said = {"jobId": claim.key.job_id, "stepId": claim.key.step_id}
            _log.info("result.adopted", extra=said)
        except StepStopped:
            await claim.release()
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)

    async def _keep(self, claim: HeldClaim, interruption: Interruption) -> None:
        """It is renewed by the clock: there is no message whose lock would say how long."""
        while True:
            await self._parts.clock.sleep(_CLAIM.total_seconds() / 2)
            try:
                await claim.renew(self._until())
            except StoreError:
                interruption.stop(StopReason.SUPERSEDED)

    def _until(self) -> datetime:
        return self._parts.clock.now() + _CLAIM
