"""Many clients at once, over HTTP, on every ledger."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from lucius_orchestrator.ports.registry import TenantConfig
from tests.api.serving import address, served
from tests.api.stage import Stage
from tests.engine.plane import OCR, Plane, configured, result
from tests.ledger.view import job_ids
from tests.runner.deadlines import DEADLINE, seconds

TWINS = 64
LIMIT = 5
CROWD_DEADLINE = seconds(90)
"""Twins on tables make a thousand requests: 20 s beside other load."""


async def at_once(stage: Stage, bodies: list[dict[str, Any]]) -> list[httpx.Response]:
    """All in flight together, on connections of their own."""
    limits = httpx.Limits(max_connections=len(bodies))
    headers = {"Authorization": "Bearer ada"}
    async with (
        served(stage.app) as port,
        asyncio.timeout(CROWD_DEADLINE),
        httpx.AsyncClient(limits=limits, base_url=address(port), headers=headers) as client,
    ):
        return await asyncio.gather(
            *(client.post("/v1/orchestrate", json=body, timeout=CROWD_DEADLINE) for body in bodies)
        )


@pytest.mark.parametrize("members", [{}, {"idempotency_key": "k"}], ids=["content", "key"])
async def test_twins_become_one_job(plane: Plane, members: dict[str, Any]) -> None:
    answers = await at_once(Stage(plane), [OCR | members] * TWINS)
    assert Counter(answer.status_code for answer in answers) == {202: TWINS}
    bodies = [answer.json() for answer in answers]
    assert [body["jobId"] for body in bodies] == await job_ids(plane.ledger) * TWINS
    assert Counter(body["duplicate"] for body in bodies) == {False: 1, True: TWINS - 1}


async def test_twins_of_one_result_are_applied_once(plane: Plane) -> None:
    stage = Stage(plane)
    given = await plane.working()
    async with asyncio.timeout(DEADLINE):
        answers = await asyncio.gather(*(stage.reply(result(given)) for _ in range(TWINS)))
    verdicts = Counter(answer.json()["verdict"] for answer in answers)
    assert verdicts == {"APPLIED": 1, "DUPLICATE": TWINS - 1}


async def test_a_limit_holds_against_a_crowd(plane: Plane) -> None:
    stage = Stage(plane)
    stage.registry.current = configured(tenant=TenantConfig(max_inflight=LIMIT))
    distinct = [OCR | {"idempotency_key": str(number)} for number in range(10 * LIMIT)]
    answers = await at_once(stage, distinct)
    accepted = sum(answer.status_code == 202 for answer in answers)
    refused = [answer for answer in answers if answer.status_code != 202]
    assert {answer.json()["code"] for answer in refused} == {"TENANT_SATURATED"}
    assert accepted == len(await job_ids(plane.ledger))
    assert accepted <= LIMIT
    if plane.backend.counts_exactly:
        assert accepted == LIMIT
