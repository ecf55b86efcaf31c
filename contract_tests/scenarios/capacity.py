"""LC-22: how much a service does at once, and what it leaves to others."""

from collections.abc import Mapping, Sequence
from itertools import accumulate

from contract_tests.bench import Bench, Sent
from contract_tests.rules import Need
from contract_tests.scenarios.scenario import Scenario
from contract_tests.verdicts import RuleBroken
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock import What

_MORE = 3
_WINDOW = 1.5
_TIMES = 3
_ACKS_AHEAD = "The ACK is sent when a message is received instead of when its work begins."
_FETCHES_AHEAD = (
    "More messages are fetched than there are free slots (the prefetch of the client, or a receiver"
    " for each lane that fetches on its own), and wait locked where no work is done on them."
)


async def concurrency(bench: Bench, via: ReplyVia) -> None:
    """Three directives more than its concurrency come at once, and all inputs are held back: so
    many reads are open as it works on directives."""
    limit = bench.contract.concurrency
    sent = [bench.send(via, held=True) for _ in range(limit + _MORE)]
    await _expect_at_work(bench, sent, limit)
    more = await bench.mock.recording.wait(lambda: _at_work(sent) > limit or None, _WINDOW)
    most = _at_work(sent)
    for each in sent:
        each.release()
    for each in sent:
        await each.succeeded()
        await each.settled()
    if more:
        raise RuleBroken(f"{most} directives were worked on at once; its concurrency is {limit}")


async def backlog(bench: Bench, via: ReplyVia) -> None:
    """Three times as many directives as its concurrency come at once, and three more; all inputs
    are held back. What is being worked on is let go, then what has taken its place, until all is
    done. Never are more directives acknowledged and held back than its concurrency; each ACK comes
    in time, counted from the begin of the work; and each directive has one RESULT."""
    limit = bench.contract.concurrency
    sent = [bench.send(via, held=True) for _ in range(_TIMES * limit + _MORE)]
    await _expect_at_work(bench, sent, limit)
    await bench.mock.recording.wait(
        lambda: sum(bool(each.entries(What.ACK)) for each in sent) > limit or None, _WINDOW
    )
    let_go = await _work_off(bench, sent)
    _check_acknowledged(sent, let_go, limit)
    for each in sent:
        await each.settled()
    _check_one_result(sent)


async def second_instance(bench: Bench, via: ReplyVia) -> None:
    """Twice as many directives as its concurrency come at once; all inputs are held back. When the
    service has as many at work as it can, a second instance is started: it gets all the others,
    and no lock of a directive runs out before its work was begun."""
    limit = bench.contract.concurrency
    sent = [bench.send(via, held=True) for _ in range(2 * limit)]
    await _expect_at_work(bench, sent, limit)
    await bench.mock.recording.wait(
        lambda: sum(bool(each.entries(What.DELIVERED)) for each in sent) > limit or None, _WINDOW
    )
    async with bench.second_instance():
        await bench.mock.recording.wait(
            lambda: _at_work(sent) == len(sent) or _left_lying(sent) or None, bench.patience
        )
        _check_taken_over(sent, limit)
        for each in sent:
            each.release()
        for each in sent:
            await each.succeeded()
            await each.settled()
    _check_one_result(sent)


async def _expect_at_work(bench: Bench, sent: Sequence[Sent], limit: int) -> None:
    await bench.expect(
        lambda: _at_work(sent) >= limit or None,
        f"fewer than its {limit} directives were worked on at once",
    )


def _at_work(sent: Sequence[Sent]) -> int:
    return sum(bool(each.refs[0].reads) for each in sent)


async def _work_off(bench: Bench, sent: Sequence[Sent]) -> dict[str, int]:
    """By job: the number of the first entry after its input was let go."""
    let_go: dict[str, int] = {}
    while held := [each for each in sent if each.job_id not in let_go]:
        await bench.expect(
            lambda held=held: _at_work(held) or None,  # type: ignore[misc]
            f"of a backlog of {len(sent)} directives {len(held)} were not begun",
        )
        begun = [each for each in held if each.refs[0].reads]
        for each in begun:
            await _check_acked_in_time(bench, each)
            let_go[each.job_id] = len(bench.mock.recording)
            each.release()
        for each in begun:
            await each.succeeded()
    return let_go


def _check_acknowledged(sent: Sequence[Sent], let_go: Mapping[str, int], limit: int) -> None:
    """A directive whose input is held back cannot be finished, whatever the service says."""
    changes: list[tuple[int, int]] = []
    for each in sent:
        acks, end = each.entries(What.ACK), let_go[each.job_id]
        if acks and acks[0].number < end:
            changes += [(acks[0].number, 1), (end, -1)]
    most = max(accumulate(change for _, change in sorted(changes)), default=0)
    if most > limit:
        raise RuleBroken(
            f"{most} directives were acknowledged and not finished at once; its concurrency is"
            f" {limit}",
            _ACKS_AHEAD,
        )


async def _check_acked_in_time(bench: Bench, sent: Sent) -> None:
    seconds, recording = bench.contract.ack_seconds, bench.mock.recording
    left = seconds - (recording.now() - sent.entries(What.READ)[0].at)
    if await recording.wait(lambda: sent.entries(What.ACK) or None, left) is None:
        raise RuleBroken(
            f"under a backlog no ACK of {sent.named} came within {seconds:g} s of the begin of its"
            " work",
            "ACKs wait behind the work or behind each other, or are left out when there is much to"
            " do.",
        )


def _check_taken_over(sent: Sequence[Sent], limit: int) -> None:
    if lying := _left_lying(sent):
        raise RuleBroken(
            f"the lock of {lying[0].named} ran out before its work was begun", _FETCHES_AHEAD
        )
    taken = _at_work(sent) - limit
    if taken < limit:
        raise RuleBroken(
            f"a second instance got {taken} of the {limit} directives that the first had no room"
            " for",
            _FETCHES_AHEAD,
        )


def _left_lying(sent: Sequence[Sent]) -> list[Sent]:
    """Those whose lock was lost before their work was begun."""
    found = []
    for each in sent:
        lost, reads = each.entries(What.LOCK_LOST), each.entries(What.READ)
        if lost and (not reads or lost[0].number < reads[0].number):
            found.append(each)
    return found


def _check_one_result(sent: Sequence[Sent]) -> None:
    for each in sent:
        number = len(each.results())
        if number != 1:
            raise RuleBroken(f"{number} RESULTs of {each.named} came although nothing failed")


SCENARIOS = (
    Scenario("LC-22", "concurrency", concurrency),
    Scenario("LC-22", "backlog", backlog),
    Scenario("LC-22", "second-instance", second_instance, needs=(Need.TWO_STORES,)),
)
