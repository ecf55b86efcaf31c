"""LC-12, LC-13, LC-19, LC-23: directives that are not as usual."""

from contract_tests.bench import Bench, Sent
from contract_tests.scenarios.scenario import Scenario, Ways
from contract_tests.verdicts import RuleBroken
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import MALFORMED, Kind, What

_GIVEN_UP = "MaxDeliveryCountExceeded"
"""The bus's own reason for a dead letter."""


async def invalid_payload(bench: Bench, via: ReplyVia) -> None:
    """A directive carries the invalid sample of the contract."""
    sent = bench.send(via, sample=bench.contract.invalid)
    body = (await sent.result()).body or {}
    error = body.get("error") or {}
    for found, wanted, name in (
        (body.get("status"), "FAILED_FINAL", "status"),
        (body.get("failure_class"), "NON_RETRYABLE", "failure_class"),
        (error.get("code"), "PAYLOAD_INVALID", "error code"),
    ):
        if found != wanted:
            raise RuleBroken(f"an invalid payload was answered with {name} {found}, not {wanted}")
    await sent.settled()
    if any(ref.reads for ref in sent.refs):
        raise RuleBroken("the work was begun although the payload is invalid")


async def malformed(bench: Bench, via: ReplyVia) -> None:
    """Five directives cannot be read: broken JSON, a list instead of an object, a missing field, a
    field of a wrong type, and another major version. Then a good one comes."""
    for kind in MALFORMED:
        sent = bench.send(via, kind=kind)
        await sent.settled()
        _check_dead(sent, kind)
    await bench.sentinel(via)


def _check_dead(sent: Sent, kind: Kind) -> None:
    last = sent.bench.mock.settlements(sent.issued)[-1]
    if last.what is not What.DEAD_LETTERED:
        raise RuleBroken(
            f"a malformed directive ({kind}) was completed: nobody will ever know of it"
        )
    if last.detail == _GIVEN_UP:
        raise RuleBroken(f"a malformed directive ({kind}) was delivered until the bus gave it up")
    if not last.detail:
        raise RuleBroken(f"a malformed directive ({kind}) was dead-lettered without a reason")
    if sent.runs or sent.results():
        raise RuleBroken(f"a malformed directive ({kind}) was worked on")


async def unknown_fields(bench: Bench, via: ReplyVia) -> None:
    """A directive has members that nobody knows, at the top and inside a ref, and a higher minor
    version."""
    sent = bench.send(via, kind=Kind.UNKNOWN_FIELDS)
    await bench.expect(
        lambda: [*sent.results(), *sent.entries(What.DEAD_LETTERED)] or None,
        "a directive with fields that nobody knows was not answered",
    )
    if not sent.results():
        raise RuleBroken("a directive with fields that nobody knows was dead-lettered")
    await sent.succeeded()


async def foreign_step_type(bench: Bench, via: ReplyVia) -> None:
    """A directive names another step type, though it reached the service's subscription."""
    sent = bench.send(via, kind=Kind.FOREIGN_STEP_TYPE)
    await bench.nothing_more(sent)
    if sent.runs:
        raise RuleBroken("a directive of a step type that is not the service's own was run")
    if any((e.body or {}).get("status") == "SUCCEEDED" for e in sent.results()):
        raise RuleBroken("a directive of a foreign step type was answered SUCCEEDED")


SCENARIOS = (
    Scenario("LC-12", "invalid-payload", invalid_payload, Ways.EACH),
    Scenario("LC-13", "malformed", malformed),
    Scenario("LC-19", "unknown-fields", unknown_fields),
    Scenario("LC-23", "foreign", foreign_step_type),
)
