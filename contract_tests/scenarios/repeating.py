"""LC-04 to LC-09: duplicates, attempts and leases."""

from datetime import timedelta

from contract_tests.bench import LOCK_SECONDS, Bench, Sent
from contract_tests.rules import Need
from contract_tests.scenarios.replying import check_identical
from contract_tests.scenarios.scenario import Scenario, Ways
from contract_tests.verdicts import RuleBroken
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import Kind, What


async def duplicate_after_completion(bench: Bench, via: ReplyVia) -> None:
    """A directive that was served and settled is published again."""
    sent = await _served(bench, via)
    await _check_duplicate(bench, sent, "a duplicate that came after completion")


async def duplicate_after_restart(bench: Bench, via: ReplyVia) -> None:
    """The service is killed and started again before the duplicate comes: what is done is done for
    the next instance too."""
    sent = await _served(bench, via)
    await bench.restart()
    await _check_duplicate(bench, sent, "a duplicate that came after a restart")


async def _served(bench: Bench, via: ReplyVia) -> Sent:
    sent = bench.send(via)
    await sent.succeeded()
    await sent.settled()
    return sent


async def _check_duplicate(bench: Bench, sent: Sent, of: str) -> None:
    bench.mock.publish(sent.issued)
    await bench.nothing_more(sent)
    _check_runs(sent, of)
    check_identical(sent.results())


async def duplicates_at_once(bench: Bench, via: ReplyVia) -> None:
    """Three copies are published at once, and the input is held back until the service has had time
    to take a second one."""
    sent = bench.send(via, held=True, copies=3)
    await sent.reading()
    await bench.mock.recording.wait(
        lambda: len(sent.entries(What.DELIVERED)) > 1 or None, within=1.0
    )
    sent.release()
    await bench.nothing_more(sent)
    _check_runs(sent, "three copies that were delivered at the same time")
    number = len(sent.results())
    if number != 1:
        raise RuleBroken(f"{number} RESULTs came for copies of one directive")


async def duplicates_for_two(bench: Bench, via: ReplyVia) -> None:
    """A second instance with the same store is started, and four copies are published while the
    input is held back."""
    async with bench.second_instance():
        sent = bench.send(via, held=True, copies=4)
        await sent.reading()
        await bench.mock.recording.wait(
            lambda: len(sent.entries(What.DELIVERED)) > 1 or None, within=2.0
        )
        await bench.mock.recording.wait(lambda: sent.runs > 1 or None, within=1.0)
        sent.release()
        await bench.nothing_more(sent)
    _check_runs(sent, "copies that two instances got")
    number = len(sent.results())
    if number != 1:
        raise RuleBroken(f"{number} RESULTs came from two instances for copies of one directive")


def _check_runs(sent: Sent, of: str) -> None:
    if sent.runs > 1:
        raise RuleBroken(f"the work ran {sent.runs} times because of {of}")


async def older_attempt_late(bench: Bench, via: ReplyVia) -> None:
    """The directive of attempt 1 arrives when attempt 2 is done."""
    first = bench.send(via, publish=False)
    bench.mock.mark_sent(first.issued)
    second = bench.next_attempt(first)
    await second.succeeded()
    await second.settled()
    bench.mock.publish(first.issued)
    await bench.nothing_more(first)
    if first.runs:
        raise RuleBroken("attempt 1 was run after attempt 2 had been acknowledged")
    if first.results():
        raise RuleBroken("attempt 1 was answered with a RESULT after attempt 2")


async def older_attempt_at_work(bench: Bench, via: ReplyVia) -> None:
    """Attempt 1 is still at work when attempt 2 comes, is acknowledged and done."""
    first = await bench.at_work(via)
    second = bench.next_attempt(first)
    await second.acked()
    await second.succeeded()
    await bench.nothing_comes_of(first)
    if first.results():
        raise RuleBroken(
            "attempt 1 was answered with a RESULT after attempt 2 had been acknowledged",
            "Nobody looks, before the RESULT is stored, whether a newer attempt was seen.",
        )


async def expired_on_arrival(bench: Bench, via: ReplyVia) -> None:
    """The directive arrives an hour after its lease has ended."""
    sent = bench.send(via, kind=Kind.EXPIRED)
    await bench.nothing_more(sent)
    if sent.runs:
        raise RuleBroken("a directive whose lease ended an hour ago was run")
    if sent.results():
        raise RuleBroken("a directive whose lease ended an hour ago was answered with a RESULT")


async def frozen_past_the_lease(bench: Bench, via: ReplyVia) -> None:
    """The process stands still until its lease is over, as in a long pause of a virtual machine,
    and then goes on as if nothing had happened. Its message is kept meanwhile: were it delivered
    again, whoever takes it over would fence off the late work, and hide that it is reported."""
    lease = timedelta(seconds=4)
    sent = await bench.at_work(
        via,
        lease=lease,
        ack_timeout=timedelta(seconds=4),
        heartbeat=timedelta(seconds=60),
    )
    bench.service.freeze()
    bench.mock.keep_messages()
    try:
        await bench.mock.recording.wait(
            lambda: None, within=2 * lease.total_seconds() + LOCK_SECONDS
        )
    finally:
        bench.service.thaw()
    before = len(sent.results())
    await bench.nothing_comes_of(sent)
    if len(sent.results()) > before:
        raise RuleBroken(
            "a RESULT came from work that ended after its lease was over",
            "The lease is not looked at again when the work is done, before the RESULT is stored.",
        )


async def stale_ack(bench: Bench, via: ReplyVia) -> None:
    """Each ACK of a directive is answered 409 STALE_ATTEMPT while its input is held back; then the
    input is given."""
    sent = bench.send(via, held=True, publish=False)
    await bench.fault("callback-409", count=None, types=["ACK"], job_id=sent.job_id)
    bench.mock.publish(sent.issued)
    await bench.expect(
        lambda: next((e for e in sent.entries(What.ACK) if e.status), None),
        "no ACK came",
    )
    await bench.nothing_comes_of(sent)
    if sent.results():
        raise RuleBroken("a RESULT came after the ACK had been answered STALE_ATTEMPT")


async def new_attempt(bench: Bench, via: ReplyVia) -> None:
    """Attempt 1 was done too late and does not count; attempt 2 is done anew."""
    first = await bench.given_up(via)
    second = bench.next_attempt(first)
    ack = await second.acked()
    result = await second.succeeded()
    for entry in (ack, result):
        if (entry.body or {}).get("lease_id") != second.issued.lease_id:
            raise RuleBroken(f"{entry.what} of attempt 2 carries another lease than attempt 2's")
    if not second.runs:
        raise RuleBroken("attempt 2 was answered without having been run")


SCENARIOS = (
    Scenario("LC-04", "after-completion", duplicate_after_completion, Ways.EACH),
    Scenario("LC-04", "after-restart", duplicate_after_restart),
    Scenario("LC-05", "at-once", duplicates_at_once, Ways.EACH),
    Scenario("LC-05", "two-instances", duplicates_for_two, needs=(Need.SECOND_INSTANCE,)),
    Scenario("LC-06", "late", older_attempt_late, Ways.EACH),
    Scenario("LC-06", "at-work", older_attempt_at_work, needs=(Need.TWO_AT_ONCE,)),
    Scenario("LC-07", "on-arrival", expired_on_arrival, Ways.EACH),
    Scenario("LC-07", "frozen", frozen_past_the_lease),
    Scenario("LC-08", "stale-ack", stale_ack, Ways.HTTP),
    Scenario("LC-09", "new-attempt", new_attempt, Ways.EACH),
)
