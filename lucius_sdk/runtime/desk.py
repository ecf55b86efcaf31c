"""Where deliveries arrive: each goes to the step it belongs to, or begins one.

A step that this process already has takes a further message of the same attempt along. A newer
attempt ends the older one. What is no directive of this service is dead-lettered.
"""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from lucius_bus.port import BusError, Delivery
from lucius_sdk.context import StopReason
from lucius_sdk.directive_model import Directive, DirectiveRefused, read_directive
from lucius_sdk.idempotency_store import StepKey
from lucius_sdk.metrics import StepOutcome
from lucius_sdk.runtime.parts import Parts, Slot, Slots
from lucius_sdk.runtime.rounds import Rounds
from lucius_sdk.runtime.step import Step

_log = logging.getLogger("lucius_sdk")


class Desk:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._rounds = Rounds(parts.clock)
        self._steps: dict[StepKey, Step] = {}
        self._tasks: dict[asyncio.Task[None], Step | None] = {}

    def accept(self, lane: int, delivery: Delivery, slots: Slots) -> None:
        """A delivery, which comes with a slot."""
        self._parts.metrics.received(lane)
        slot = Slot(slots, is_held=True)
        try:
            directive = read_directive(delivery.message.body)
            self._parts.service.handler_of(directive)
        except DirectiveRefused as refused:
            self._begin(self._refuse(delivery, refused, slot))
            return
        self._assign(directive, delivery, slot)

    def stop(self, reason: StopReason) -> None:
        for step in filter(None, self._tasks.values()):
            step.stop(reason)

    def stop_waiting(self, reason: StopReason) -> None:
        """Only those that wait for another instance or for a slot, now or later."""
        for step in filter(None, self._tasks.values()):
            step.stop_waiting(reason)

    async def ended(self) -> None:
        """Wait until every step is settled."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def abort(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _assign(self, directive: Directive, delivery: Delivery, slot: Slot) -> None:
        key = StepKey(directive.job_id, directive.step_id)
        known = self._steps.get(key)
        if known is not None and known.is_same(directive):
            known.add(delivery)
            slot.free()
            return
        step = Step(self._parts, directive, slot)
        step.add(delivery)
        if known is None or known.directive.attempt_no < directive.attempt_no:
            self._steps[key] = step
            if known is not None:
                known.stop(StopReason.SUPERSEDED)
        elif known.directive.attempt_no > directive.attempt_no:
            step.stop(StopReason.SUPERSEDED)
        self._begin(self._live(step), step)

    async def _live(self, step: Step) -> None:
        self._rounds.add(step)
        try:
            await step.live()
        finally:
            self._rounds.remove(step)
            if self._steps.get(step.key) is step:
                del self._steps[step.key]

    async def _refuse(self, delivery: Delivery, refused: DirectiveRefused, slot: Slot) -> None:
        message_id = delivery.message.message_id
        extra = {"message_id": message_id, "reason": refused.reason, "why": refused.description}
        _log.error("directive.refused", extra=extra)
        try:
            await self._parts.bus.dead_letter(delivery, refused.reason, refused.description)
        except BusError as error:  # it comes again
            _log.warning("message.unsettled", extra={"message_id": message_id, "error": str(error)})
        finally:
            slot.free()
        self._parts.metrics.finished("", StepOutcome.DEAD_LETTERED)

    def _begin(self, work: Coroutine[Any, Any, None], step: Step | None = None) -> None:
        task = asyncio.create_task(work)
        self._tasks[task] = step
        task.add_done_callback(self._end)

    def _end(self, task: "asyncio.Task[None]") -> None:
        del self._tasks[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("step.broken", exc_info=error)
