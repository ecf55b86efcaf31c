"""What processes report to each other, and what waits by service and lane."""

from datetime import timedelta

from lucius_contract.routing import lane_of
from lucius_orchestrator.domain.aggregate import Engine, StepPolicy
from lucius_orchestrator.domain.creation import StepPlan
from lucius_orchestrator.ports.ledger import REPORT_LIMIT, Backlog, Ledger, TrafficReport
from tests.ledger.backends import START, Backend
from tests.ledger.jobs import MANY, TENANT, Pair, Story, World

SECOND = timedelta(seconds=1)
LONG_AGO = START - timedelta(days=365)
DAY = timedelta(days=1)


def report(
    process_id: str = "one", at: timedelta = timedelta(), document: str = "{}"
) -> TrafficReport:
    return TrafficReport(process_id, START + at, document)


async def found(ledger: Ledger, since: timedelta = -DAY) -> list[TrafficReport]:
    return sorted(await ledger.reports(START + since))


async def test_a_report_is_read_as_it_was_published(ledgers: Pair) -> None:
    assert await ledgers[1].reports(LONG_AGO) == []
    await ledgers[0].publish_report(report(document='{"window": 7}'))
    assert await ledgers[1].reports(LONG_AGO) == [report(document='{"window": 7}')]


async def test_a_report_takes_the_place_of_the_process_s_earlier_one(ledger: Ledger) -> None:
    await ledger.publish_report(report(document="long" * 100))
    await ledger.publish_report(report(at=SECOND, document="short"))
    assert await found(ledger) == [report(at=SECOND, document="short")]


async def test_every_process_has_a_report(ledgers: Pair) -> None:
    reports = [report(f"host-{number}/pid ä#?", document=str(number)) for number in range(20)]
    for number, each in enumerate(reports):
        await ledgers[number % 2].publish_report(each)
    assert await found(ledgers[0]) == sorted(reports)


async def test_reports_are_read_from_a_moment_on_which_belongs_to_it(ledger: Ledger) -> None:
    reports = [report(f"p{number}", number * SECOND) for number in range(4)]
    for each in reports:
        await ledger.publish_report(each)
    assert await found(ledger, 2 * SECOND) == reports[2:]
    assert await found(ledger, 2 * SECOND + timedelta(microseconds=1)) == reports[3:]
    assert await found(ledger, 4 * SECOND) == []


async def test_a_report_may_be_long_and_hold_any_text(ledger: Ledger) -> None:
    texts = ["ä" * REPORT_LIMIT, "😀" * REPORT_LIMIT, '"\\\n\t' * (REPORT_LIMIT // 4), ""]
    for text in texts:
        await ledger.publish_report(report(document=text))
        assert await found(ledger) == [report(document=text)]


async def test_a_process_that_stops_withdraws_its_report(ledgers: Pair) -> None:
    for process_id in ("one", "two"):
        await ledgers[0].publish_report(report(process_id))
    for ledger in (*ledgers, ledgers[0]):
        await ledger.withdraw_report("one")
    await ledgers[0].withdraw_report("nobody")
    assert await found(ledgers[1]) == [report("two")]
    await ledgers[0].publish_report(report("one", SECOND))
    assert await found(ledgers[1]) == [report("one", SECOND), report("two")]


async def test_reports_that_are_old_are_pruned(ledger: Ledger) -> None:
    for number in range(5):
        await ledger.publish_report(report(f"p{number}", number * SECOND))
    assert await ledger.prune(START + 3 * SECOND, 2) == 2
    assert await ledger.prune(START + 3 * SECOND, MANY) == 1
    assert await ledger.prune(START + 3 * SECOND, MANY) == 0
    assert await found(ledger) == [report(f"p{number}", number * SECOND) for number in (3, 4)]


async def test_reports_outlive_the_process(backend: Backend) -> None:
    await backend.ledger.publish_report(report())
    await backend.ledger.close()
    assert await found(await backend.reopen()) == [report()]


async def test_reports_are_no_rows_that_a_repair_minds(ledger: Ledger, world: World) -> None:
    await ledger.publish_report(report())
    await world.create()
    assert await ledger.repair(MANY) == []
    assert await found(ledger) == [report()]
    assert await ledger.backlog() == {lane_of(TENANT): 1}


async def waiting(world: World, service: str, tenant: str = TENANT) -> Story:
    plans = (StepPlan(service.upper(), service, {}, StepPolicy()),)
    return await world.create(tenant, plans=plans)


async def test_what_waits_is_counted_by_service_and_lane(ledgers: Pair, world: World) -> None:
    tenants = "acme", "bolt"
    assert lane_of(tenants[0]) != lane_of(tenants[1])
    assert await ledgers[1].backlogs() == []
    expected = []
    for service in ("ocr", "sis"):
        for tenant in tenants:
            first = await waiting(world, service, tenant)
            await waiting(world, service, tenant)
            oldest = first.directives[0].created_at
            expected.append(Backlog(service, lane_of(tenant), 2, oldest))
    assert sorted(await ledgers[1].backlogs()) == sorted(expected)


async def test_what_is_held_or_postponed_waits_and_what_was_sent_does_not(
    ledger: Ledger, world: World
) -> None:
    jobs = [await waiting(world, "ocr") for _ in range(3)]
    sent, held, *_ = await world.claim(2)
    await ledger.postpone([held], "unreachable")
    lane, oldest = lane_of(TENANT), jobs[0].directives[0].created_at
    assert await ledger.backlogs() == [Backlog("ocr", lane, 3, oldest)]
    await jobs[0].sent(sent)
    oldest = jobs[1].directives[0].created_at
    assert await ledger.backlogs() == [Backlog("ocr", lane, 2, oldest)]


async def test_what_a_workflow_asks_for_is_no_backlog_of_a_service(
    ledger: Ledger, world: World
) -> None:
    job = await world.create(engine=Engine.TEMPORAL)
    await job.opened()
    assert await ledger.backlogs() == []
    assert await ledger.backlog() == {lane_of(TENANT): 1}
