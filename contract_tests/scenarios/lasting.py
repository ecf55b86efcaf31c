"""LC-21, LC-24, LC-26: health, and work that takes long."""

from datetime import timedelta

from contract_tests.bench import LOCK_SECONDS, Bench, Sent
from contract_tests.scenarios.replying import IDENTITY
from contract_tests.scenarios.scenario import Scenario, Ways
from contract_tests.scenarios.storing import taken_away
from contract_tests.verdicts import RuleBroken
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import Entry, What

_NOTICED = 10.0
_BEAT = timedelta(seconds=1)
_BEATS = 9


async def bus_away(bench: Bench, via: ReplyVia) -> None:
    """The bus stops listening and cuts its connections; then it is back."""
    await _check_health(bench)
    await bench.fault("bus-away", count=None)
    try:
        await _check_notices(bench, "the bus")
    finally:
        await bench.mock.clear_faults("bus-away")
    await _check_recovers(bench, "the bus")
    await bench.sentinel(via)


async def storage_away(bench: Bench, via: ReplyVia) -> None:
    """The storage root is replaced by something that cannot be written to; then it is back."""
    await _check_health(bench)
    with taken_away(bench):
        await _check_notices(bench, "the storage")
    await _check_recovers(bench, "the storage")
    await bench.sentinel(via)


async def _check_health(bench: Bench) -> None:
    for path in ("/healthz/live", "/healthz/ready"):
        status = await bench.service.answer(path)
        bench.note(f"{path} is answered {status or 'with nothing'}")
        if status != 200:
            raise RuleBroken(f"{path} was answered {status or 'with nothing'}, not 200")


async def _check_notices(bench: Bench, what: str) -> None:
    noticed = await bench.service.until(False, _NOTICED)
    if noticed is None:
        raise RuleBroken(f"/healthz/ready was still answered 200 after {what} was away for 10 s")
    bench.note(f"ready is false after {noticed:.1f} s")
    if await bench.service.answer("/healthz/live") != 200:
        raise RuleBroken(
            f"/healthz/live failed because {what} was away",
            "Liveness is about the process alone: one that fails it is killed.",
        )


async def _check_recovers(bench: Bench, what: str) -> None:
    if await bench.service.until(True, bench.patience) is None:
        raise RuleBroken(f"/healthz/ready was not answered 200 again after {what} was back")


async def longer_than_the_lock(bench: Bench, via: ReplyVia) -> None:
    """The input is held back for more than twice the lock of the message."""
    sent = bench.send(via, held=True)
    await sent.reading()
    lost = await bench.mock.recording.wait(
        lambda: sent.entries(What.LOCK_LOST) or None, within=2.4 * LOCK_SECONDS
    )
    sent.release()
    await sent.succeeded()
    await bench.nothing_more(sent)
    if sent.runs > 1:
        raise RuleBroken(f"the work ran {sent.runs} times because it took longer than the lock")
    if lost:
        raise RuleBroken("the lock of the message ran out while the work went on")


async def heartbeats(bench: Bench, via: ReplyVia) -> None:
    """The input is held back until the lease that the directive came with is over: only
    heartbeats, and what is answered to them, keep the work alive."""
    sent = await bench.at_work(via, heartbeat=_BEAT, lease=4 * _BEAT, ack_timeout=2 * _BEAT)
    await bench.mock.recording.wait(
        lambda: len(sent.entries(What.HEARTBEAT)) >= _BEATS or None, within=2 * _BEATS
    )
    number = len(sent.entries(What.HEARTBEAT))
    if number < _BEATS:
        raise RuleBroken(
            f"{number} heartbeats came in {2 * _BEATS} s of work; one was due every"
            f" {_BEAT.total_seconds():g} s"
        )
    for entry in sent.entries(What.HEARTBEAT):
        _check_beat(entry, sent)
    sent.release()
    await sent.succeeded()


def _check_beat(entry: Entry, sent: Sent) -> None:
    body, directive = entry.body or {}, sent.issued.body
    for name in IDENTITY:
        if body.get(name) != directive[name]:
            raise RuleBroken(f"HEARTBEAT has {name} {body.get(name)!r}, not the directive's")


async def cancel(bench: Bench, via: ReplyVia) -> None:
    """The job is cancelled in mid-work: the next heartbeat is answered with `cancel_requested`."""
    sent = await bench.at_work(via, heartbeat=_BEAT)
    bench.mock.cancel(sent.job_id)
    number = len(bench.mock.recording)
    await bench.expect(
        lambda: _has_heard(sent, number) or None,
        "no heartbeat came after the cancel, so the service cannot have heard of it",
    )
    sent.release()
    body = (await sent.result()).body or {}
    code = (body.get("error") or {}).get("code")
    if (body.get("status"), code) != ("FAILED_FINAL", "CANCELLED"):
        raise RuleBroken(
            f"cancel was requested in the answer to a heartbeat; the RESULT is"
            f" {body.get('status')}, {code} instead of FAILED_FINAL, CANCELLED"
        )


def _has_heard(sent: Sent, since: int) -> bool:
    """Whoever sends a second heartbeat has read the answer to the first."""
    beats = [entry for entry in sent.entries(What.HEARTBEAT) if entry.number >= since]
    return len(beats) > 1 or bool(sent.results())


SCENARIOS = (
    Scenario("LC-21", "bus-away", bus_away),
    Scenario("LC-21", "storage-away", storage_away),
    Scenario("LC-24", "long-work", longer_than_the_lock),
    Scenario("LC-26", "heartbeats", heartbeats, Ways.EACH),
    Scenario("LC-26", "cancel", cancel, Ways.HTTP),
)
