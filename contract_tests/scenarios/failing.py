"""LC-14 to LC-18: storage, orchestrator and the process itself fail."""

from collections.abc import Mapping
from typing import Any

from contract_tests.bench import Bench, Sent, is_taken
from contract_tests.scenarios.replying import check_identical
from contract_tests.scenarios.scenario import Scenario, Ways
from contract_tests.verdicts import RuleBroken
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import Entry, What

_HEARD = 3.0
"""Seconds in which a signal has arrived, whether or not readiness shows it."""
_PASSES_AFTER = 10.0
"""Seconds after which a fault of storage is over, for services that try again by themselves."""


async def storage_refuses(bench: Bench, via: ReplyVia) -> None:
    """The input is answered 503 until a RESULT comes, or for ten seconds."""
    await _storage_fails(bench, via, "storage-503")


async def storage_breaks_off(bench: Bench, via: ReplyVia) -> None:
    """The input breaks off in the middle until a RESULT comes, or for ten seconds."""
    await _storage_fails(bench, via, "storage-cut")


async def _storage_fails(bench: Bench, via: ReplyVia, fault: str) -> None:
    sent = bench.send(via, publish=False)
    await bench.fault(fault, count=None, job_id=sent.job_id)
    bench.mock.publish(sent.issued)
    try:
        early = await bench.mock.recording.wait(lambda: sent.results() or None, _PASSES_AFTER)
    finally:
        await bench.mock.clear_faults(fault)
    if early and (early[0].body or {}).get("status") == "SUCCEEDED":
        raise RuleBroken(
            f"it was answered SUCCEEDED although its input could not be read ({fault})",
            "What was read is not compared with the length that was promised.",
        )
    _check_retryable((await sent.result()).body or {}, f"a passing fault of storage ({fault})")


def _check_retryable(body: Mapping[str, Any], what: str) -> None:
    status, failure_class = body.get("status"), body.get("failure_class")
    if status == "SUCCEEDED":
        return
    if status == "FAILED" and failure_class in (None, "RETRYABLE"):
        return  # the older spelling
    if status != "FAILED_RETRY" or failure_class != "RETRYABLE":
        raise RuleBroken(
            f"{what} was answered {status}, {failure_class},"
            f" {(body.get('error') or {}).get('code')}"
        )


async def orchestrator_down(bench: Bench, via: ReplyVia) -> None:
    """RESULTs meet an orchestrator that is down: connections are cut, then (over HTTP) it answers
    503; then it is back. The message must not be settled before the RESULT was taken."""
    sent = await bench.at_work(via)
    if via is ReplyVia.HTTP:
        how = {"types": ["RESULT"], "job_id": sent.job_id}
        await bench.fault("callback-cut", count=3, **how)
        await bench.fault("callback-503", count=3, **how)
    else:
        await bench.fault("reply-dropped", count=1)
    sent.release()
    result = await sent.result()
    await sent.settled()
    _check_reported_first(sent, result)
    check_identical(sent.results())
    await bench.mock.clear_faults()


async def ack_refused(bench: Bench, via: ReplyVia) -> None:
    """Every ACK is answered 503: the work must begin all the same, and its RESULT is accepted."""
    sent = bench.send(via, publish=False)
    await bench.fault("callback-503", count=None, types=["ACK"], job_id=sent.job_id)
    bench.mock.publish(sent.issued)
    try:
        await sent.succeeded()
        await sent.settled()
    finally:
        await bench.mock.clear_faults("callback-503")


async def orchestrator_slow(bench: Bench, via: ReplyVia) -> None:
    """It takes the RESULT, and says so only after some seconds."""
    sent = await bench.at_work(via)
    await bench.fault("callback-slow", count=1, types=["RESULT"], job_id=sent.job_id, seconds=3.0)
    sent.release()
    result = await sent.result()
    await sent.settled()
    _check_reported_first(sent, result)
    check_identical(sent.results())


def _check_reported_first(sent: Sent, result: Entry) -> None:
    settled = sent.bench.mock.settlements(sent.issued)[0]
    if settled.number < result.number:
        raise RuleBroken(
            "the message was settled before the RESULT was delivered: a crash in between would have"
            " lost it"
        )


async def killed_in_work(bench: Bench, via: ReplyVia) -> None:
    """SIGKILL while the input is held back; then the service is started again."""
    sent = await bench.at_work(via)
    await bench.service.kill()
    sent.release()
    await bench.start()
    _check_retryable((await sent.result()).body or {}, "work that a kill interrupted")
    await bench.nothing_more(sent)
    check_identical(sent.results())


async def killed_before_reporting(bench: Bench, via: ReplyVia) -> None:
    """The RESULT is held up on its way, and the process is killed; then it is started again."""
    sent = await bench.at_work(via)
    if via is ReplyVia.HTTP:
        await bench.fault("callback-hold", count=None, types=["RESULT"], job_id=sent.job_id)
        sent.release()
        await bench.expect(lambda: sent.results() or None, "no RESULT came after the work was done")
    else:
        await bench.fault("reply-dropped", count=None)
        sent.release()
        await bench.expect(
            lambda: bench.mock.dropped_replies or None,
            "no RESULT was sent after the work was done",
        )
    await bench.service.kill()
    await bench.mock.clear_faults()
    await bench.start()
    await bench.expect(
        lambda: next((e for e in sent.results() if is_taken(e)), None),
        "no RESULT came after the restart",
    )
    await bench.nothing_more(sent)
    if sent.runs > 1:
        raise RuleBroken("the work was run again although it was finished before the kill")
    check_identical(sent.results())


async def ends_when_idle(bench: Bench, via: ReplyVia) -> None:
    """SIGTERM to a service that has nothing to do."""
    await bench.sentinel(via)
    bench.service.terminate()
    await _check_end(bench)


async def drains(bench: Bench, via: ReplyVia) -> None:
    """SIGTERM while the input of a directive is held back; then another directive comes, and the
    input is given. After a restart both must be served, once."""
    at_work = await bench.at_work(via)
    bench.service.terminate()
    await bench.service.until(False, within=_HEARD)
    later = bench.send(via)
    at_work.release()
    await _check_end(bench)
    if later.runs:
        raise RuleBroken("new work was begun after SIGTERM")
    if not at_work.results() and not at_work.entries(What.ABANDONED, What.COMPLETED):
        raise RuleBroken(
            "it ended without finishing its work and without releasing the message: that stays"
            " locked, and nobody can go on with it"
        )
    await bench.start()
    await later.succeeded()
    _check_retryable((await at_work.result()).body or {}, "work that SIGTERM interrupted")
    await bench.nothing_more(at_work)
    check_identical(at_work.results())


async def _check_end(bench: Bench) -> None:
    grace = bench.contract.grace_seconds
    code = await bench.service.ended(grace)
    if code is None:
        raise RuleBroken(f"the process did not end within its grace time of {grace:g} s")
    if code != 0:
        raise RuleBroken(f"the process ended with exit code {code} after SIGTERM, not with 0")


SCENARIOS = (
    Scenario("LC-14", "storage-refuses", storage_refuses),
    Scenario("LC-14", "storage-breaks-off", storage_breaks_off),
    Scenario("LC-15", "ack-refused", ack_refused, Ways.HTTP),
    Scenario("LC-15", "down", orchestrator_down, Ways.EACH),
    Scenario("LC-15", "slow", orchestrator_slow, Ways.HTTP),
    Scenario("LC-16", "killed", killed_in_work, Ways.EACH),
    Scenario("LC-17", "killed", killed_before_reporting, Ways.EACH),
    Scenario("LC-18", "idle", ends_when_idle),
    Scenario("LC-18", "drains", drains),
)
