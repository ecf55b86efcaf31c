"""`dead_letters`: failures for an operator, each kept once."""

from datetime import timedelta

import pytest

from lucius_contract.audit import DeadLetterKind
from lucius_contract.errors import ErrorCode
from lucius_orchestrator.domain.events import OutboxFailed
from lucius_orchestrator.ports.ledger import (
    DeadLetterQuery,
    DeadLetterRow,
    InvalidCursor,
    JobQuery,
    Ledger,
    dead_letter_rows,
)
from tests.ledger.backends import START
from tests.ledger.jobs import TENANT, Pair, World, together
from tests.ledger.view import all_pages, letters

UNREADABLE = DeadLetterRow(
    "reply.17",
    DeadLetterKind.REPLY,
    None,
    None,
    None,
    None,
    "ENVELOPE_INVALID",
    "not JSON: 'ä\U0001f9ed\0'",
    START,
    START,
)


def a_letter(number: int, **fields: object) -> DeadLetterRow:
    at = START + timedelta(seconds=number)
    letter = UNREADABLE._replace(id=f"reply.{number}", first_at=at, last_at=at)
    return letter._replace(**fields)  # type: ignore[arg-type]


async def test_a_commit_writes_the_letters_of_its_decision(ledger: Ledger, world: World) -> None:
    job = await world.create()
    decision = job.decide(OutboxFailed(*job.identity, ErrorCode.DIRECTIVE_TOO_LARGE, "300 KiB, ä"))
    await job.commit(decision, await world.claim_one())
    expected = dead_letter_rows(job.job, decision.dead_letters)
    assert {letter.kind for letter in expected} == {DeadLetterKind.OUTBOX, DeadLetterKind.STEP}
    found = await letters(ledger)
    assert sorted(found) == sorted(expected)
    assert {type(letter.kind) for letter in found} == {DeadLetterKind}


async def test_a_job_that_fails_before_its_first_step_has_a_letter_of_its_own(
    ledger: Ledger, world: World
) -> None:
    job = await world.create(steps=2)
    await job.paused()
    await job.happens(job.result())
    await job.exceeds_its_sla()
    (letter,) = await letters(ledger)
    assert (letter.kind, letter.step_id, letter.attempt_no) == (DeadLetterKind.JOB, None, None)
    assert (letter.job_id, letter.tenant_id) == (job.job_id, TENANT)


async def test_a_failure_that_is_committed_twice_is_kept_once(ledger: Ledger, world: World) -> None:
    job = await world.create()
    claim = await world.claim_one()
    await job.acked()
    first = await job.unpublishable(claim)
    again = await job.unpublishable(claim)
    (letter,) = await letters(ledger)
    assert letter.kind is DeadLetterKind.OUTBOX
    assert letter.first_at == first.dead_letters[0].at
    assert letter.last_at == again.dead_letters[0].at > letter.first_at


async def test_a_letter_can_be_buried_without_a_job(ledger: Ledger) -> None:
    assert await ledger.bury(UNREADABLE) is True
    assert await letters(ledger) == [UNREADABLE]


async def test_of_a_letter_that_is_buried_again_only_the_last_time_moves(ledger: Ledger) -> None:
    await ledger.bury(UNREADABLE)
    later = START + timedelta(hours=1)
    again = UNREADABLE._replace(message="another", code="OTHER", first_at=later, last_at=later)
    assert await ledger.bury(again) is False
    assert await letters(ledger) == [UNREADABLE._replace(last_at=later)]


async def test_a_letter_that_a_commit_wrote_is_not_buried_beside_it(
    ledger: Ledger, world: World
) -> None:
    await (await world.create()).fails()
    (written,) = await letters(ledger)
    later = written.last_at + timedelta(hours=1)
    assert await ledger.bury(written._replace(last_at=later)) is False
    assert await letters(ledger) == [written._replace(last_at=later)]


async def test_of_many_who_bury_one_letter_one_is_told_that_it_is_new(ledgers: Pair) -> None:
    answers = await together(*(ledgers[n % 2].bury(UNREADABLE) for n in range(8)))
    assert sorted(answers) == [False] * 7 + [True]
    assert await letters(ledgers[0]) == [UNREADABLE]


async def test_a_redrive_marks_all_letters_of_its_job_and_no_other(
    ledger: Ledger, world: World
) -> None:
    job, other = await world.create_many(2)
    claim = (await world.claim())[0]
    await job.unpublishable(claim, ErrorCode.DIRECTIVE_TOO_LARGE)
    await other.fails()
    assert await ledger.mark_redriven(job.job_id, "job_new") == 2
    marks = {letter.id: letter.redriven_by for letter in await letters(ledger)}
    assert sorted(map(str, marks.values())) == ["None", "job_new", "job_new"]


async def test_a_letter_that_is_marked_stays_as_it_is(ledger: Ledger, world: World) -> None:
    job = await (await world.create()).fails()
    assert await ledger.mark_redriven(job.job_id, "job_new") == 1
    assert await ledger.mark_redriven(job.job_id, "job_newer") == 0
    (letter,) = await letters(ledger)
    assert letter.redriven_by == "job_new"
    assert await ledger.bury(letter._replace(redriven_by=None)) is False
    assert await letters(ledger) == [letter]


async def test_a_job_without_letters_has_none_to_mark(ledger: Ledger, world: World) -> None:
    job = await world.create()
    assert await ledger.mark_redriven(job.job_id, "job_new") == 0
    assert await ledger.mark_redriven("job_nobody", "job_new") == 0


async def test_filters_are_met_all_at_once(ledger: Ledger, world: World) -> None:
    await (await world.create()).fails(error_code="ocr.A")
    await (await world.create()).fails(error_code="ocr.B")
    await (await world.create("other")).fails(error_code="ocr.A")
    await ledger.bury(UNREADABLE)
    await ledger.bury(a_letter(1, tenant_id=TENANT, code="ocr.A"))

    async def found(**fields: object) -> list[tuple[str | None, str, str]]:
        query = DeadLetterQuery(limit=1)._replace(**fields)  # type: ignore[arg-type]
        return sorted(
            (letter.tenant_id, letter.kind, letter.code) for letter in await letters(ledger, query)
        )

    step, reply = DeadLetterKind.STEP, DeadLetterKind.REPLY
    assert len(await letters(ledger)) == 5
    assert await found(tenant_id="other") == [("other", step, "ocr.A")]
    assert await found(tenant_id=TENANT, code="ocr.A") == [
        (TENANT, reply, "ocr.A"),
        (TENANT, step, "ocr.A"),
    ]
    assert await found(kind=step, code="ocr.A") == [
        (TENANT, step, "ocr.A"),
        ("other", step, "ocr.A"),
    ]
    assert await found(kind=reply, code="ENVELOPE_INVALID") == [(None, reply, "ENVELOPE_INVALID")]
    assert await found(tenant_id=TENANT, kind=step, code="ocr.B") == [(TENANT, step, "ocr.B")]
    assert await found(tenant_id="nobody") == []
    assert await found(kind=DeadLetterKind.JOB) == []


@pytest.mark.parametrize("limit", [1, 2, 3, 6, 7, 8])
async def test_pages_of_any_size_hold_each_letter_once_newest_first(
    ledger: Ledger, limit: int
) -> None:
    """Several of them are of one moment."""
    moments = [START + timedelta(seconds=second) for second in (5, 1, 3, 3, 3, 2, 3)]
    buried = [a_letter(n, first_at=at, last_at=at) for n, at in enumerate(moments)]
    for letter in buried:
        await ledger.bury(letter)
    query = DeadLetterQuery(limit=limit)
    pages = await all_pages(lambda cursor: ledger.dead_letters(query._replace(cursor=cursor)))
    assert max(map(len, pages)) <= limit
    found = [letter for page in pages for letter in page]
    assert sorted(found) == sorted(buried)
    assert [letter.first_at for letter in found] == sorted(moments, reverse=True)


async def test_a_letter_that_is_buried_again_keeps_its_place(ledger: Ledger) -> None:
    for number in range(4):
        await ledger.bury(a_letter(number))
    await ledger.bury(a_letter(1, last_at=START + timedelta(hours=1)))
    found = [letter.id for letter in await letters(ledger, DeadLetterQuery(limit=2))]
    assert found == [f"reply.{number}" for number in (3, 2, 1, 0)]


async def test_a_letter_buried_between_two_pages_breaks_neither(ledgers: Pair) -> None:
    for number in range(5):
        await ledgers[0].bury(a_letter(number))
    first = await ledgers[0].dead_letters(DeadLetterQuery(limit=2))
    await ledgers[0].bury(a_letter(9))
    await ledgers[0].bury(a_letter(2, last_at=START + timedelta(hours=1)))
    rest = await letters(ledgers[1], DeadLetterQuery(limit=2, cursor=first.cursor))
    seen = [letter.id for letter in (*first.items, *rest)]
    assert seen == [f"reply.{number}" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize("cursor", ["nonsense", "", "ünïcode", "'; --", "e30=", "W10", "0"])
async def test_what_no_ledger_gave_is_an_invalid_cursor(ledger: Ledger, cursor: str) -> None:
    await ledger.bury(UNREADABLE)
    with pytest.raises(InvalidCursor):
        await ledger.dead_letters(DeadLetterQuery(cursor=cursor))


async def test_a_cursor_of_the_jobs_or_half_a_cursor_is_none_of_the_letters(
    ledger: Ledger, world: World
) -> None:
    await world.create_many(2)
    for number in range(2):
        await ledger.bury(a_letter(number))
    of_jobs = (await ledger.jobs(JobQuery(limit=1))).cursor
    of_letters = (await ledger.dead_letters(DeadLetterQuery(limit=1))).cursor
    assert of_jobs is not None
    assert of_letters is not None
    for cursor in (of_jobs, of_letters[:-3], of_letters[3:]):
        with pytest.raises(InvalidCursor):
            await ledger.dead_letters(DeadLetterQuery(cursor=cursor))
    for cursor in (of_letters, of_jobs[:-3], of_jobs[3:]):
        with pytest.raises(InvalidCursor):
            await ledger.jobs(JobQuery(cursor=cursor))
