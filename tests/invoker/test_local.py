"""The invoker where it is the process itself, and before the bus has what it needs."""

import asyncio
from datetime import timedelta

import pytest

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.bootstrap.invoking import SettledPublisher
from lucius_orchestrator.invoker.desk import InvokerDesk
from lucius_orchestrator.invoker.local import LocalInvoker
from lucius_orchestrator.ports.invoker import InvokerRefused, InvokerUnavailable
from tests.invoker.stage import QUICK, InvokerStage


async def test_nothing_is_published_before_there_are_subscriptions(stage: InvokerStage) -> None:
    settled, plane = asyncio.Event(), stage.plane
    publisher = SettledPublisher(plane.engine, plane.bus, None, settled)
    invoker = LocalInvoker(InvokerDesk(plane.engine, publisher, QUICK))
    name = await stage.opened()
    with pytest.raises(InvokerUnavailable):
        await invoker.publish(name)
    assert await plane.directives() == []
    settled.set()
    assert (await invoker.publish(name))["action"] == "WAIT"
    (directive,) = await plane.directives()
    assert directive.attempt_no == 1


async def test_what_is_refused_is_refused_as_over_http(stage: InvokerStage) -> None:
    invoker = LocalInvoker(stage.desk)
    with pytest.raises(InvokerRefused) as refused:
        await invoker.command("job_unknown", "cancel", None)
    assert refused.value.code is ErrorCode.JOB_NOT_FOUND
    name = await stage.opened()
    later = stage.lease_end() + timedelta(minutes=1)
    with pytest.raises(InvokerRefused) as refused:
        await invoker.open_attempt(name._replace(lease_id="2" * 32), later)
    assert refused.value.following is not None
