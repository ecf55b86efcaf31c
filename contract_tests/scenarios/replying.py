"""LC-01, LC-02, LC-03, LC-20, LC-25: what replies say, when, and where they go."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from contract_tests.bench import Bench, Sent
from contract_tests.rules import Need
from contract_tests.scenarios.scenario import Scenario, Ways
from contract_tests.verdicts import RuleBroken
from lucius_contract.canonical import digest
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import Entry, What

IDENTITY = ("jobId", "stepId", "tenant_id", "attempt_no", "lease_id")
_UTC = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]00:00)")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?")
_OFF = timedelta(minutes=5)


async def ack_before_work(bench: Bench, via: ReplyVia) -> None:
    """An idle service gets a directive whose input is held back, so that the work cannot end. The
    ACK must come all the same, in time."""
    sent = bench.send(via, held=True)
    ack = await _check_acked(bench, sent)
    sent.release()
    result = await sent.succeeded()
    if result.number < ack.number:
        raise RuleBroken("the RESULT came before the ACK")


async def _check_acked(bench: Bench, sent: Sent) -> Entry:
    seconds, recording = bench.contract.ack_seconds, bench.mock.recording
    delivered = await bench.expect(
        lambda: next(iter(sent.entries(What.DELIVERED)), None),
        "the directive was not received, though the service is ready and below its concurrency",
    )
    left = seconds - (recording.now() - delivered.at)
    acks = await recording.wait(lambda: sent.entries(What.ACK) or None, left)
    if acks is None:
        raise RuleBroken(f"no ACK came within {seconds:g} s of the delivery, while it was working")
    return acks[0]


async def ack_before_result(bench: Bench, via: ReplyVia) -> None:
    """Nothing is held back: however fast the work is, its ACK comes before its RESULT."""
    sent = bench.send(via)
    result = await sent.succeeded()
    await sent.settled()
    acks = sent.entries(What.ACK)
    if not acks or acks[0].number > result.number:
        raise RuleBroken("the RESULT came before the ACK" if acks else "no ACK came at all")


async def ack_beside_work(bench: Bench, via: ReplyVia) -> None:
    """A second directive comes while the input of the first is held back."""
    first = await bench.at_work(via)
    second = bench.send(via, held=True)
    await _check_acked(bench, second)
    for each in (first, second):
        each.release()
        await each.succeeded()


async def identity(bench: Bench, via: ReplyVia) -> None:
    """Every reply to a directive that succeeds and to one that is refused is compared with the
    directive, field by field."""
    sent = bench.send(via)
    await sent.acked()
    await sent.succeeded()
    refused = bench.send(via, sample=bench.contract.invalid)
    await refused.result()
    for each in (sent, refused):
        for entry in each.entries(What.ACK, What.RESULT, What.HEARTBEAT):
            _check_identity(entry, each)


def _check_identity(entry: Entry, sent: Sent) -> None:
    body, directive = entry.body or {}, sent.issued.body
    if body.get("type") != entry.what:
        raise RuleBroken(f"{entry.what} has type {body.get('type')!r}")
    if entry.what is What.ACK and body.get("status") != "ACKED":
        raise RuleBroken(f"ACK has status {body.get('status')!r} instead of 'ACKED'")
    for name in (*IDENTITY, "correlation_id"):
        if body.get(name) != directive[name]:
            raise RuleBroken(
                f"{entry.what} has {name} {body.get(name)!r}; the directive has {directive[name]!r}"
            )
    _check_time(entry, body)


def _check_time(entry: Entry, body: Mapping[str, Any]) -> None:
    text = body.get("timestamp")
    if not isinstance(text, str) or not _UTC.fullmatch(text):
        raise RuleBroken(f"{entry.what} has timestamp {text!r}: not a time in UTC, as …T10:02:00Z")
    if abs(datetime.fromisoformat(text) - datetime.now(UTC)) > _OFF:
        raise RuleBroken(
            f"{entry.what} has timestamp {text}, which is not now", "Local time was written as UTC."
        )


async def one_result(bench: Bench, via: ReplyVia) -> None:
    """A directive is served without any disturbance; then its RESULTs are counted."""
    sent = bench.send(via)
    await sent.succeeded()
    await bench.nothing_more(sent)
    number = len(sent.results())
    if number != 1:
        raise RuleBroken(f"{number} RESULTs came although nothing failed")


async def same_result_again(bench: Bench, via: ReplyVia) -> None:
    """The answers to the first two RESULTs are lost, so it has to be sent again, as it was."""
    sent = bench.send(via, held=True)
    await sent.reading()
    await bench.fault("callback-lost-answer", count=2, types=["RESULT"], job_id=sent.job_id)
    sent.release()
    await bench.nothing_more(sent)
    results = sent.results()
    if len(results) == 1:
        raise RuleBroken("the RESULT whose answer was lost was not sent again")
    check_identical(results)


def check_identical(results: list[Entry]) -> None:
    contents = {digest(entry.body or {}) for entry in results}
    if len(contents) > 1:
        differing = sorted({name for e in results for name in _differences(results[0], e)})
        raise RuleBroken(
            f"RESULTs of one attempt differ in {', '.join(differing)}",
            "The RESULT is built anew for each try instead of being stored and sent as it is.",
        )


def _differences(one: Entry, other: Entry) -> set[str]:
    a, b = one.body or {}, other.body or {}
    return {name for name in {*a, *b} if a.get(name) != b.get(name)}


async def trace(bench: Bench, via: ReplyVia) -> None:
    """The trace id in the header or property `traceparent` of each reply is compared with the
    directive's."""
    sent = bench.send(via)
    await sent.acked()
    await sent.succeeded()
    wanted = _trace_id(sent.issued.body["traceparent"])
    for entry in sent.entries(What.ACK, What.RESULT):
        where = "header" if via is ReplyVia.HTTP else "property"
        found = entry.headers.get("traceparent")
        if found is None:
            raise RuleBroken(f"{entry.what} came without the {where} traceparent")
        said = (entry.body or {}).get("traceparent")
        for text in (found, said) if said is not None else (found,):
            if _trace_id(text) != wanted:
                raise RuleBroken(
                    f"{entry.what} has traceparent {text!r}; the directive's trace id is {wanted}"
                )
        echoed = (entry.body or {}).get("correlation_id")
        if echoed != sent.issued.body["correlation_id"]:
            raise RuleBroken(f"{entry.what} has correlation_id {echoed!r}, not the directive's")


def _trace_id(text: object) -> str | None:
    found = _TRACEPARENT.fullmatch(text) if isinstance(text, str) else None
    return found[1] if found else None


async def right_address(bench: Bench, via: ReplyVia) -> None:
    """Directives of several lanes; every reply must come where its directive wants it."""
    for lane in (0, 7, 15):
        sent = bench.send(via, tenant_id=bench.tenant(lane))
        wanted = "http" if via is ReplyVia.HTTP else f"bus {lane}"
        await bench.expect(
            lambda sent=sent: sent.results() or _refused(sent) or None,  # type: ignore[misc]
            f"no RESULT of a directive of lane {lane} came, neither over HTTP nor on a reply topic",
        )
        _check_addresses(sent, wanted)
        await bench.nothing_more(sent)
        _check_addresses(sent, wanted)


def _check_addresses(sent: Sent, wanted: str) -> None:
    for entry in sent.entries(What.ACK, What.RESULT, What.HEARTBEAT):
        if entry.via != wanted:
            raise RuleBroken(f"{entry.what} came over {entry.via}, not over {wanted}")
        if entry.answer in ("UNAUTHENTICATED", "FORBIDDEN"):
            raise RuleBroken(
                f"{entry.what} was answered {entry.status}: it did not carry the callback_token of"
                " its directive",
                "The token is that of another directive, or it is not sent as a bearer token.",
            )


def _refused(sent: Sent) -> list[Entry]:
    return [e for e in sent.entries() if e.answer in ("UNAUTHENTICATED", "FORBIDDEN")]


SCENARIOS = (
    Scenario("LC-01", "before-work", ack_before_work, Ways.EACH),
    Scenario("LC-01", "before-result", ack_before_result, Ways.EACH),
    Scenario("LC-01", "beside-work", ack_beside_work, needs=(Need.TWO_AT_ONCE,)),
    Scenario("LC-02", "identity", identity, Ways.EACH),
    Scenario("LC-03", "one", one_result, Ways.EACH),
    Scenario("LC-03", "same-again", same_result_again, Ways.HTTP),
    Scenario("LC-20", "trace", trace, Ways.EACH),
    Scenario("LC-25", "address", right_address, Ways.EACH),
)
