"""What the runtime counts of the directives that it gets."""

from lucius_sdk import StepContext
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.metrics import NoMetrics, StepOutcome
from tests.sdk.runtime.rig import Payload, Rig


class Counts(NoMetrics):
    def __init__(self) -> None:
        self.outcomes: list[tuple[str, str]] = []
        self.seconds: list[float | None] = []
        self.replies: list[tuple[str, str]] = []

    def finished(
        self, step_type: str, outcome: StepOutcome | str, seconds: float | None = None
    ) -> None:
        self.outcomes.append((step_type, outcome))
        self.seconds.append(seconds)

    def reply(self, type: str, verdict: str) -> None:
        self.replies.append((type, verdict))


async def test_each_directive_is_counted_with_its_outcome(rig: Rig) -> None:
    counts = Counts()
    await rig.start(metrics=counts)
    await rig.send(rig.directive())
    await rig.settled()
    await rig.send(rig.directive())
    await rig.settled()
    assert counts.outcomes == [("TEST", StepOutcome.SUCCEEDED), ("TEST", StepOutcome.DUPLICATE)]
    assert counts.seconds == [0.0, None]


async def test_a_step_that_failed_is_counted_as_failed(rig: Rig) -> None:
    def fail(_: StepContext[Payload]) -> None:
        raise NonRetryableError("INPUT_INVALID", "not a document")

    rig.workshop.act = fail
    counts = Counts()
    await rig.start(metrics=counts)
    await rig.send(rig.directive())
    await rig.settled()
    assert counts.outcomes == [("TEST", StepOutcome.FAILED_FINAL)]


async def test_each_reply_is_counted_with_its_verdict(rig: Rig) -> None:
    counts = Counts()
    await rig.start(metrics=counts)
    await rig.send(rig.directive())
    await rig.settled()
    assert counts.replies == [("ACK", "APPLIED"), ("RESULT", "APPLIED")]
