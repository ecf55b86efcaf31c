"""A service in a process of its own; each run of the handler is a line in TEST_RUNS.

TEST_KILL_AT says at which stage it is killed. Its successor is the process that had forked it: that
has imported what a service needs, and nothing more.
"""

import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from lucius_bus.servicebus import ServiceBusBus
from lucius_sdk import Service, StepContext
from lucius_sdk.ack_client import AckClient
from lucius_sdk.idempotency_store import Claims, HeldClaim
from lucius_sdk.result_client import ResultClient

RUNS = Path(os.environ.get("TEST_RUNS", os.devnull))
STAGES: dict[str, tuple[type[Any], str]] = {
    "before the claim": (Claims, "claim"),
    "before the ACK": (AckClient, "ack"),
    "before COMPLETED": (HeldClaim, "complete"),
    "after COMPLETED": (ResultClient, "report"),
    "before REPORTED": (HeldClaim, "report"),
    "before it is settled": (ServiceBusBus, "complete"),
}
"""Each stage is the moment before a verb is used for the first time."""

service = Service()
at_work: list[Callable[[], None]] = []


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def burn(seconds: float) -> None:
    """Nothing lets other threads run but the interpreter's own switches."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        pass


def note(ctx: StepContext[dict[str, Any]]) -> None:
    with RUNS.open("a") as runs:
        runs.write(f"{ctx.job_id}\n")


@service.step("WRITE")
def execute(ctx: StepContext[dict[str, Any]]) -> None:
    note(ctx)
    for happens in at_work:
        happens()
    ctx.workspace.write("output.txt", ctx.job_id)


@service.step("NOTE")
def only_note(ctx: StepContext[dict[str, Any]]) -> None:
    note(ctx)


@service.step("BURN")
def burn_in_a_thread(ctx: StepContext[dict[str, Any]]) -> None:
    note(ctx)
    burn(ctx.payload["seconds"])


@service.step("BLOCK")
async def burn_in_the_loop(ctx: StepContext[dict[str, Any]]) -> None:
    note(ctx)
    burn(ctx.payload["seconds"])


def dying(verb: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    async def die_first(*arguments: Any, **named: Any) -> Any:
        die()
        return await verb(*arguments, **named)

    return die_first


def doom(stage: str) -> None:
    """Have this process killed at the stage."""
    if stage in STAGES:
        owner, name = STAGES[stage]
        setattr(owner, name, dying(getattr(owner, name)))
    else:
        at_work.append(die)


if __name__ == "__main__":
    if stage := os.environ.get("TEST_KILL_AT"):
        process = os.fork()
        if process:
            _, status = os.waitpid(process, 0)
            print(f"ended {os.waitstatus_to_exitcode(status)}", flush=True)
        else:
            doom(stage)
    sys.exit(service.run())
