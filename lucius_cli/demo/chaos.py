"""A service is killed in the middle of its work, and started again."""

from typing import TYPE_CHECKING, Any

from lucius_cli.demo.stack import Stack
from lucius_cli.demo.views import Progress
from lucius_contract.states import StepState

if TYPE_CHECKING:
    from lucius_cli.client import Api

JsonObject = dict[str, Any]

_VICTIM, _STEP = "ocr", "OCR"


class Chaos:
    """SIGKILL as soon as the orchestrator has heard that the work has begun."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._killed = False

    def look(self, job: JsonObject, shown: Progress) -> None:
        (step,) = (step for step in job["steps"] if step["step_type"] == _STEP)
        if self._killed or step["state"] != StepState.IN_PROGRESS:
            return
        self._killed = True
        victim = self._stack.services[_VICTIM]
        shown.note(f"killing {_VICTIM} (process {victim.pid}, SIGKILL) in the middle of its work")
        victim.kill()
        self._stack.restart(_VICTIM)
        shown.note(
            f"{_VICTIM} is started again as process {victim.pid}. The message stays locked for the"
            " dead one until its lock runs out, within a minute; then the work is taken over"
        )

    def tell(self, api: "Api", job_id: str, shown: Progress) -> None:
        """What the ledger has to say about it."""
        if not self._killed:
            shown.note(
                "the work was done before it could be killed: nothing was lost, nothing shown"
            )
            return
        (step,) = (step for step in api.job(job_id)["steps"] if step["step_type"] == _STEP)
        shown.note(
            f"{_STEP} {step['state']} in attempt {step['attempt_no']} of {step['max_attempts']}:"
            " the kill has cost time, and neither the job nor an attempt"
        )
