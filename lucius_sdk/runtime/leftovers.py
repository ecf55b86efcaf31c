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
    Claimed,
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
    """`run_once` is one look through the store."""

    def __init__(self, parts: Parts, store: DedupStore) -> None:
        self._parts = parts
        self._store = store
        self._interruptions: dict[StepKey, Interruption] = {}
        self._is_stopped = False

    async def run(self) -> None:
        while not self._is_stopped:
            await self.run_once()
            await self._parts.clock.sleep(PAUSE)

    async def run_once(self) -> int:
        """How many were reported."""
        before = self._parts.clock.now() - timedelta(seconds=self._parts.skew)
        try:
            keys = await self._store.lapsed_results(before, _AT_ONCE)
        except StoreError as error:
            _log.warning("store.unavailable", extra={"error": str(error)})
            return 0
        reported = await asyncio.gather(*map(self._report, keys))
        return sum(reported)

    def stop(self) -> None:
        self._is_stopped = True
        for interruption in self._interruptions.values():
            interruption.stop(StopReason.SHUTTING_DOWN)

    async def _report(self, key: StepKey) -> bool:
        interruption = self._interruptions[key] = Interruption()
        try:
            claimed = await self._parts.claims.adopt(key, self._until())
            if claimed is None:
                return False
            await self._send(claimed, interruption)
        except StoreError as error:
            _log.warning("store.unavailable", extra={"error": str(error)})
            return False
        except StepStopped:
            return False
        finally:
            del self._interruptions[key]
        _log.info("result.adopted", extra={"jobId": key.job_id, "stepId": key.step_id})
        return True

    async def _send(self, claimed: Claimed, interruption: Interruption) -> None:
        claim = claimed.claim
        keeping = asyncio.create_task(self._keep(claim, interruption))
        try:
            await report(self._parts, claim, interruption, claim.record.deadline)
        except StepStopped:
            await claim.release()
            raise
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
