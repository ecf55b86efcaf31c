"""The peer: a workflow with three activities that do nothing, as Temporal's own library has it."""

import asyncio
from datetime import timedelta
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

QUEUE = "bare"
_TIMEOUT = timedelta(seconds=30)


@activity.defn
async def nothing(number: int) -> int:
    return number


@workflow.defn
class ThreeSteps:
    @workflow.run
    async def run(self) -> int:
        for number in range(3):
            await workflow.execute_activity(nothing, number, start_to_close_timeout=_TIMEOUT)
        return 3


def worker(client: Client) -> Worker:
    return Worker(client, task_queue=QUEUE, workflows=[ThreeSteps], activities=[nothing])


async def run_one(client: Client) -> None:
    await client.execute_workflow(ThreeSteps.run, id=f"bare-{uuid4()}", task_queue=QUEUE)


async def run_many(client: Client, jobs: int, at_once: int) -> None:
    places = asyncio.Semaphore(at_once)

    async def run() -> None:
        async with places:
            await run_one(client)

    await asyncio.gather(*(run() for _ in range(jobs)))
