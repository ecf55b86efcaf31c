"""Reports to be told, and a way to make any that a run could."""

from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import strategies as st

from contract_tests.rules import RULES, Level
from contract_tests.verdicts import Moment, Outcome, Report, Verdict

STARTED = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
CONTRACT = "/home/somebody/services/upper/contract.yaml"
NASTY = "<script>alert('x')</script> & \"q\" \x00\x08\x1b[31mred\x1b[0m\ud800\ufffe\x9b\u202e end"

TIMELINE = (
    Moment(0.0, "harness", "published attempt 1 over global-bus-p7", "86a307"),
    Moment(0.001, "bus", "delivered attempt 1 over global-bus-p7", "86a307"),
    Moment(0.145, "service", "ACK attempt 1 over http → 200 APPLIED", "86a307"),
    Moment(0.160, "harness", "note the service is killed"),
    Moment(0.210, "harness", "note the service is started"),
    Moment(
        2.817, "service", "RESULT attempt 1 SUCCEEDED over http → 409 RESULT_CONFLICT", "86a307"
    ),
)


def repeat(case_id: str) -> str:
    return f"lucius conform run {CONTRACT} --only {case_id}"


def passed(rule_id: str, name: str = "sample") -> Outcome:
    case_id = f"{rule_id}/{name}"
    return Outcome(case_id, rule_id, Verdict.PASS, 1.5, repeat=repeat(case_id), timeline=TIMELINE)


def failed(rule_id: str, name: str = "sample", reason: str = "the work ran twice") -> Outcome:
    return replace(
        passed(rule_id, name),
        verdict=Verdict.FAIL,
        reason=reason,
        cause="Nothing is remembered.",
        log="first line\nlast line",
    )


def skipped(rule_id: str) -> Outcome:
    reason = "the contract declares that the service has no heartbeats"
    return Outcome(f"{rule_id}/sample", rule_id, Verdict.SKIPPED, reason=reason)


def fault(rule_id: str) -> Outcome:
    return replace(failed(rule_id, reason="the mock failed"), verdict=Verdict.FAULT, cause="")


def report(*changed: Outcome, level: Level = Level.CORE, **facts: object) -> Report:
    """Of a service that keeps every rule of the level but for what is given."""
    given = {outcome.rule_id for outcome in changed}
    asked = [each for each in RULES if level is Level.FULL or each.level is Level.CORE]
    kept = [passed(each.id) for each in asked if each.id not in given]
    whole = Report(
        service="upper",
        contract=CONTRACT,
        level=level,
        started_at=STARTED,
        seconds=61.25,
        outcomes=tuple(sorted((*kept, *changed), key=lambda each: each.case_id)),
        version="0.1.0",
    )
    return replace(whole, **facts)  # type: ignore[arg-type]


_texts = st.text(st.characters(), max_size=30) | st.just(NASTY)
_seconds = st.floats(0, 1e5)
_moments = st.builds(
    Moment,
    at=_seconds,
    who=st.sampled_from(["harness", "bus", "service", "nobody"]),
    text=st.sampled_from([moment.text for moment in TIMELINE]) | _texts,
    job=st.sampled_from(["", "86a307", "39801a"]),
)


@st.composite
def _outcomes(draw: st.DrawFn, rule_id: str) -> Outcome:
    verdict = draw(st.sampled_from(Verdict))
    return Outcome(
        case_id=f"{rule_id}/sample",
        rule_id=rule_id,
        verdict=verdict,
        seconds=draw(_seconds),
        reason=draw(_texts),
        cause=draw(_texts),
        repeat=draw(_texts),
        timeline=tuple(draw(st.lists(_moments, max_size=4))),
        log=draw(_texts),
        is_known=verdict is Verdict.FAIL and draw(st.booleans()),
    )


@st.composite
def reports(draw: st.DrawFn) -> Report:
    changed = draw(st.lists(st.sampled_from(RULES[:-1]), unique=True, max_size=3))
    return report(
        *(draw(_outcomes(each.id)) for each in changed),
        service=draw(_texts),
        seconds=draw(_seconds),
        is_partial=draw(st.booleans()),
        surprises=tuple(draw(st.lists(_texts, max_size=2))),
    )
