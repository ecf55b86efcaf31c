"""Decisions per second, beside pydantic's validate + dump of one DIRECTIVE.

The decisions are those of a job of three steps that goes well: submitted, then for each step
published, acknowledged and finished with an artifact. What is timed is `decide` alone. The
DIRECTIVE is that of the second step, which carries one artifact of the first.
"""

from datetime import UTC, datetime, timedelta

from benchmarks.report import per_second, report
from lucius_contract.messages import Directive, Outcome
from lucius_contract.routing import DecisionSource, Mode, ModeDecision, route
from lucius_orchestrator.domain.aggregate import Aggregate
from lucius_orchestrator.domain.creation import JobPlan, StepPlan, new_job
from lucius_orchestrator.domain.decide import decide
from lucius_orchestrator.domain.decision import apply
from lucius_orchestrator.domain.draft import Fresh
from lucius_orchestrator.domain.events import (
    AckReceived,
    Event,
    OutboxSent,
    ResultReceived,
    Submitted,
)

TARGET = 1.0
REPEAT = 400
START = datetime(2026, 1, 27, 10, 0, tzinfo=UTC)
FRESH = Fresh("9a7c" * 8, jitter=0.5)
ARTIFACT = {
    "name": "output.txt",
    "uri": "az://workspace/lucius/acme/job_1/ocr/1/output.txt",
    "sha256": "ab" * 32,
    "size": 12_345,
    "media_type": "text/plain",
}

Moment = tuple[Aggregate, Event, datetime]


def new_aggregate() -> Aggregate:
    mode = ModeDecision(Mode.DEFAULT, DecisionSource.GLOBAL_CONFIG, "default")
    return new_job(
        JobPlan(
            job_id="job_0197f3c2d1e07000a000000000000001",
            tenant_id="acme",
            request_type="OCR_EMBEDDING_SIS",
            protocol_id="ocr_embedding_sis",
            protocol_version="1",
            steps=(
                StepPlan("OCR", "ocr", {"languages": ["eng"], "dpi": 200}),
                StepPlan("EMBEDDING", "embedding", {"chunk_size": 512, "overlap": 64}),
                StepPlan("SIS", "sis", {"prompt_set": [{"name": "a", "prompt": "b"}]}),
            ),
            route=route("acme", None, mode),
            input_ref={"uri": "az://inbox/invoice.pdf"},
            output_ref={"uri": "az://outbox/invoice.json"},
            workspace_ref={"uri": "az://workspace/lucius/acme/job_1/"},
            idempotency_hash="00" * 32,
            correlation_id="corr-123",
            traceparent="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
        START,
    )


def life_of_a_job() -> tuple[list[Moment], dict[str, object]]:
    """Every moment at which something is decided, and the body of the second directive."""
    moments: list[Moment] = []
    aggregate, now = new_aggregate(), START
    bodies: list[dict[str, object]] = []

    def happens(event: Event) -> None:
        nonlocal aggregate, now
        now += timedelta(seconds=1)
        moments.append((aggregate, event, now))
        decision = decide(aggregate, event, now, FRESH)
        bodies.extend(dict(row.body) for row in decision.outbox)
        aggregate = apply(aggregate, decision)

    happens(Submitted())
    for step in aggregate.steps:
        identity = (step.step_id, 1, FRESH.lease_id)
        happens(OutboxSent(*identity))
        happens(AckReceived(*identity, "acme"))
        happens(
            ResultReceived(*identity, "acme", Outcome.SUCCEEDED, "cd" * 32, artifacts=(ARTIFACT,))
        )
    return moments, bodies[1]


def main() -> None:
    moments, body = life_of_a_job()
    raw = Directive.read(body).to_bytes()

    def decisions() -> int:
        for _ in range(REPEAT):
            for aggregate, event, now in moments:
                decide(aggregate, event, now, FRESH)
        return REPEAT * len(moments)

    def decisions_applied() -> int:
        for _ in range(REPEAT):
            for aggregate, event, now in moments:
                apply(aggregate, decide(aggregate, event, now, FRESH))
        return REPEAT * len(moments)

    def messages() -> int:
        for _ in range(REPEAT * 5):
            Directive.model_validate_json(raw).model_dump_json()
        return REPEAT * 5

    decided, applied, validated = per_second(decisions, decisions_applied, messages)
    print(f"decide            {decided:>10,.0f} /s   {1e6 / decided:6.1f} µs")
    print(f"decide + apply    {applied:>10,.0f} /s   {1e6 / applied:6.1f} µs")
    print(f"validate + dump   {validated:>10,.0f} /s   {1e6 / validated:6.1f} µs   (one DIRECTIVE)")
    report(
        "decision",
        decided / validated,
        TARGET,
        decisions_per_second=decided,
        decisions_applied_per_second=applied,
        directives_per_second=validated,
    )


if __name__ == "__main__":
    main()
