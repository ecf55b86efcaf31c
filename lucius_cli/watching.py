"""Following a job to its end, over connections that may break."""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from lucius_cli.failures import EnvironmentFailed
from lucius_contract.states import TERMINAL_JOB_STATES

if TYPE_CHECKING:
    from lucius_cli.client import Api
    from lucius_cli.server_events import ServerEvent

JsonObject = dict[str, Any]


FROM_THE_BEGINNING = "0"
"""The events of a job are numbered from 1."""
CLOSED = "closed"
"""The server ends the stream, since the credential does not count any more."""


class Retry(NamedTuple):
    """How long to wait before each further connection; an event that arrives begins anew."""

    delays: tuple[float, ...] = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
    pause: Callable[[float], None] = time.sleep


def follow(
    api: "Api", job_id: str, after: str, retry: Retry, lost: Callable[[str], None]
) -> Iterator["ServerEvent"]:
    """The events of a job after the one named, until the job has ended. `lost` hears of every
    connection that ended before the job did; one that cannot be made at first is an error at once.
    """
    api.job(job_id)
    losses = 0
    while True:
        try:
            for event in api.stream(job_id, after):
                if event.name == CLOSED:
                    break  # the next question is answered with the reason
                after, losses = event.id or after, 0
                yield event
            if ended(api.job(job_id)):
                return
            failure = EnvironmentFailed(f"the server ends the stream, and {job_id} has not ended")
        except EnvironmentFailed as error:
            failure = error
        if losses == len(retry.delays):
            raise failure
        lost(str(failure))
        retry.pause(retry.delays[losses])
        losses += 1


def ended(job: JsonObject) -> bool:
    return job.get("state") in TERMINAL_JOB_STATES
