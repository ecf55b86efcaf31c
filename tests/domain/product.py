"""Every state that a job can be in, and everything that can happen to it there."""

from collections.abc import Callable, Iterator

from lucius_contract.errors import ErrorCode
from lucius_contract.messages import Outcome
from lucius_contract.states import OutboxState
from lucius_orchestrator.domain.aggregate import Engine, StepPolicy
from tests.domain.scenario import Scenario

FINAL, RETRY = Outcome.FAILED_FINAL, Outcome.FAILED_RETRY
LAST_ATTEMPT = StepPolicy(max_attempts=1)

Situation = Callable[[Engine], Scenario]
Happening = Callable[[Scenario], Scenario]


def _new(engine: Engine, steps: int = 3, policy: StepPolicy | None = None) -> Scenario:
    return Scenario.new(steps, policy, engine=engine)


def _begun(engine: Engine, steps: int = 3, policy: StepPolicy | None = None) -> Scenario:
    return _new(engine, steps, policy).begun()


def _working(engine: Engine, steps: int = 3, policy: StepPolicy | None = None) -> Scenario:
    return _begun(engine, steps, policy).sent().acked()


def _second_step(engine: Engine) -> Scenario:
    job = _begun(engine).succeeds()
    return job if engine is Engine.LEDGER else job.opened()


SITUATIONS: dict[str, Situation] = {
    "queued": _new,
    "first step dispatching": _begun,
    "first step awaiting ACK": lambda e: _begun(e).sent(),
    "first step never acknowledged": lambda e: _begun(e).sent().ack_timeout(),
    "first step unpublished": lambda e: _begun(e).unpublishable(),
    "working": _working,
    "working on the last step": lambda e: _working(e, 1),
    "working on the last attempt": lambda e: _working(e, 3, LAST_ATTEMPT),
    "failed, to be retried": lambda e: _working(e).result(RETRY),
    "lease expired, to be retried": lambda e: _working(e).lease_expired(),
    "second step dispatching": _second_step,
    "second step awaiting ACK": lambda e: _second_step(e).sent(),
    "second step never acknowledged": lambda e: _second_step(e).sent().ack_timeout(),
    "pausing, dispatching": lambda e: _begun(e).pause(),
    "pausing, awaiting ACK": lambda e: _begun(e).sent().pause(),
    "pausing, working": lambda e: _working(e).pause(),
    "pausing, working on the last step": lambda e: _working(e, 1).pause(),
    "paused before the start": lambda e: _new(e).pause(),
    "paused between steps": lambda e: _working(e).pause().result(),
    "paused, never acknowledged": lambda e: _begun(e).sent().ack_timeout().pause(),
    "cancelling, dispatching": lambda e: _begun(e).cancel(),
    "cancelling, awaiting ACK": lambda e: _begun(e).sent().cancel(),
    "cancelling, working": lambda e: _working(e).cancel(),
    "succeeded": lambda e: _begun(e, 1).succeeds(),
    "failed by its step": lambda e: _working(e).result(FINAL),
    "failed by its SLA": lambda e: _working(e).sla_exceeded(),
    "failed before it began": lambda e: _new(e).sla_exceeded(),
    "cancelled at once": lambda e: _new(e).cancel(),
    "cancelled after its step succeeded": lambda e: _working(e).cancel().result(),
    "cancelled after its step failed": lambda e: _working(e).cancel().result(FINAL),
}

BETWEEN_ATTEMPTS: dict[str, Situation] = {
    "first step to be opened, resumed": lambda e: _new(e).submitted().pause().resume(),
    "second step to be opened": lambda e: _working(e).result(),
    "first step waits for its turn": lambda e: _new(e).submitted().queued(),
    "first step has its turn": lambda e: _new(e).submitted().queued().turn_granted(),
    "retry waits for its turn": lambda e: _working(e).result(RETRY).queued(),
    "late retry waits for its turn": lambda e: _begun(e).sent().ack_timeout().queued(),
    "paused, waits for its turn": lambda e: _new(e).submitted().queued().pause(),
    "paused, has its turn": lambda e: _new(e).submitted().queued().pause().turn_granted(),
}
"""Only a job that waits for its workflow can be in these."""

HAPPENINGS: dict[str, Happening] = {
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

OF_WORKFLOWS: dict[str, Happening] = {
    "attempt opened": lambda s: s.opened(),
    "attempt opened, too early": lambda s: s.happens(s.opening()),
    "attempt opened again": lambda s: s.opened(
        attempt_no=s.identity()[1], lease_id=s.identity()[2]
    ),
    "attempt opened, other lease": lambda s: s.opened(attempt_no=s.active.attempt_no),
    "attempt opened, one left out": lambda s: s.opened(attempt_no=s.active.attempt_no + 2),
    "attempt opened, no room": lambda s: s.queued(),
    "turn granted": lambda s: s.turn_granted(),
    "SLA exceeded, by a sweeper": lambda s: s.sla_exceeded("job_sla"),
    "workflow lost": lambda s: s.workflow_lost(),
}


def _stale(scenario: Scenario, row: OutboxState) -> Scenario:
    """Where no attempt was made there is nothing to be stale."""
    return scenario.stale(row) if scenario.active.attempts else scenario


def outcome_of(build: Situation, happening: Happening, engine: Engine) -> str:
    """What happens, in words: `job/step`, then what the one who asked is told; of a job that waits
    for its workflow also what that has to do, and what it is sent in order to know."""
    scenario = build(engine)
    before, asked = scenario.states, len(scenario.decisions)
    index, next_before = scenario.aggregate.job.current_step_index, scenario.next["action"]
    happening(scenario)
    if len(scenario.decisions) == asked:
        return "-"
    decision = scenario.last
    job, step = scenario.aggregate.job.state, scenario.aggregate.steps[index].state
    moved = f"{job}/{step}" if (job, step) != before else "-"
    if scenario.aggregate.job.current_step_index != index:
        moved += f", next {scenario.active.state}"
    told = decision.verdict or (decision.refusal.code if decision.refusal else None)
    said = f"{moved} {told}" if told else moved
    return said if engine is Engine.LEDGER else said + _of_workflow(scenario, next_before)


def _of_workflow(scenario: Scenario, before: str) -> str:
    action = scenario.next["action"]
    words = [f"{before} -> {action}"] if action != before else []
    words += [f"{row.kind} {row.body.get('signal', '')}".rstrip() for row in scenario.last.outbox]
    return f" [{', '.join(words)}]" if words else ""


def table() -> Iterator[str]:
    """The whole product as text, one block a situation, one line a happening."""
    for situation, build in SITUATIONS.items():
        yield _headline(situation, build, Engine.LEDGER)
        for name, happening in HAPPENINGS.items():
            yield f"    {name:<28} {outcome_of(build, happening, Engine.LEDGER)}"


def temporal_table() -> Iterator[str]:
    """The same of jobs that Temporal drives, without what is as in the other table."""
    for situation, build in (SITUATIONS | BETWEEN_ATTEMPTS).items():
        yield _headline(situation, build, Engine.TEMPORAL)
        for name, happening in (HAPPENINGS | OF_WORKFLOWS).items():
            outcome = outcome_of(build, happening, Engine.TEMPORAL)
            in_both = situation in SITUATIONS and name in HAPPENINGS
            if not in_both or outcome != outcome_of(build, happening, Engine.LEDGER):
                yield f"    {name:<28} {outcome}"


def _headline(situation: str, build: Situation, engine: Engine) -> str:
    job, step = build(engine).states
    return f"{situation} [{job}/{step}]"
