"""Every state that a job can be in, and everything that can happen to it there."""

from collections.abc import Callable, Iterator

from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Outcome
from lucius_contract.states import OutboxState
from lucius_orchestrator.domain.aggregate import StepPolicy
from tests.domain.scenario import Scenario

FINAL, RETRY = Outcome.FAILED_FINAL, Outcome.FAILED_RETRY
LAST_ATTEMPT = StepPolicy(max_attempts=1)


def _working() -> Scenario:
    return Scenario.new().submitted().sent().acked()


def _second_step() -> Scenario:
    return Scenario.new().submitted().succeeds()


SITUATIONS: dict[str, Callable[[], Scenario]] = {
    "queued": lambda: Scenario.new(),
    "first step dispatching": lambda: Scenario.new().submitted(),
    "first step awaiting ACK": lambda: Scenario.new().submitted().sent(),
    "first step never acknowledged": lambda: Scenario.new().submitted().sent().ack_timeout(),
    "first step unpublished": lambda: Scenario.new().submitted().unpublishable(),
    "working": _working,
    "working on the last step": lambda: Scenario.new(1).submitted().sent().acked(),
    "working on the last attempt": lambda: Scenario.new(3, LAST_ATTEMPT).submitted().sent().acked(),
    "failed, to be retried": lambda: _working().result(RETRY),
    "lease expired, to be retried": lambda: _working().lease_expired(),
    "second step dispatching": _second_step,
    "second step awaiting ACK": lambda: _second_step().sent(),
    "second step never acknowledged": lambda: _second_step().sent().ack_timeout(),
    "pausing, dispatching": lambda: Scenario.new().submitted().pause(),
    "pausing, awaiting ACK": lambda: Scenario.new().submitted().sent().pause(),
    "pausing, working": lambda: _working().pause(),
    "pausing, working on the last step": lambda: Scenario.new(1).submitted().sent().acked().pause(),
    "paused before the start": lambda: Scenario.new().pause(),
    "paused between steps": lambda: _working().pause().result(),
    "paused, never acknowledged": lambda: Scenario.new().submitted().sent().ack_timeout().pause(),
    "cancelling, dispatching": lambda: Scenario.new().submitted().cancel(),
    "cancelling, awaiting ACK": lambda: Scenario.new().submitted().sent().cancel(),
    "cancelling, working": lambda: _working().cancel(),
    "succeeded": lambda: Scenario.new(1).submitted().succeeds(),
    "failed by its step": lambda: _working().result(FINAL),
    "failed by its SLA": lambda: _working().sla_exceeded(),
    "failed before it began": lambda: Scenario.new().sla_exceeded(),
    "cancelled at once": lambda: Scenario.new().cancel(),
    "cancelled after its step succeeded": lambda: _working().cancel().result(),
    "cancelled after its step failed": lambda: _working().cancel().result(FINAL),
}

HAPPENINGS: dict[str, Callable[[Scenario], Scenario]] = {
    "submitted": lambda s: s.submitted(),
    "outbox sent": lambda s: s.sent(),
    "outbox failed": lambda s: s.unpublishable(),
    "outbox failed, too large": lambda s: s.unpublishable(ErrorCode.DIRECTIVE_TOO_LARGE),
    "outbox superseded": lambda s: s.superseded(),
    "publish delayed": lambda s: s.publish_delayed(),
    "dispatch stale, row PENDING": lambda s: _stale(s, OutboxState.PENDING),
    "dispatch stale, row SENT": lambda s: _stale(s, OutboxState.SENT),
    "ACK": lambda s: s.acked(),
    "HEARTBEAT": lambda s: s.heartbeat(),
    "RESULT succeeded": lambda s: s.result(digest="d2"),
    "RESULT retryable": lambda s: s.result(RETRY, digest="d3"),
    "RESULT final": lambda s: s.result(FINAL, digest="d4"),
    "RESULT cancelled": lambda s: s.result(FINAL, digest="d5", error_code="CANCELLED"),
    "ACK timeout": lambda s: s.ack_timeout(),
    "lease expired": lambda s: s.lease_expired(),
    "attempt ceiling": lambda s: s.ceiling(),
    "retry due": lambda s: s.retry_due(),
    "SLA exceeded": lambda s: s.sla_exceeded(),
    "cancel": lambda s: s.cancel(),
    "pause": lambda s: s.pause(),
    "resume": lambda s: s.resume(),
}


def _stale(scenario: Scenario, row: OutboxState) -> Scenario:
    """Where no attempt was made there is nothing to be stale."""
    return scenario.stale(row) if scenario.active.attempts else scenario


def outcome_of(situation: str, happening: str) -> str:
    """What happens, in words: `job/step`, then what the one who asked is told."""
    scenario = SITUATIONS[situation]()
    before, asked = scenario.states, len(scenario.decisions)
    index = scenario.aggregate.job.current_step_index
    HAPPENINGS[happening](scenario)
    if len(scenario.decisions) == asked:
        return "-"
    decision = scenario.last
    job, step = scenario.aggregate.job.state, scenario.aggregate.steps[index].state
    moved = f"{job}/{step}" if (job, step) != before else "-"
    if scenario.aggregate.job.current_step_index != index:
        moved += f", next {scenario.active.state}"
    told = decision.verdict or (decision.refusal.code if decision.refusal else None)
    return f"{moved} {told}" if told else moved


def table() -> Iterator[str]:
    """The whole product as text, one block a situation, one line a happening."""
    for situation, build in SITUATIONS.items():
        job, step = build().states
        yield f"{situation} [{job}/{step}]"
        for happening in HAPPENINGS:
            yield f"    {happening:<28} {outcome_of(situation, happening)}"
