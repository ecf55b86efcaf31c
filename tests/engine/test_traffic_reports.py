"""What processes of one deployment learn of each other's traffic."""

from datetime import timedelta

import pytest

from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.engine.service_load import Presence, ServiceTraffic
from lucius_orchestrator.engine.traffic_reports import ReportSettings, TrafficReporter
from lucius_orchestrator.ports.ledger import REPORT_LIMIT, TrafficReport
from tests.engine.plane import Plane, ack, request, result

LIFE = ReportSettings().life


class Member:
    """A process and its reporter."""

    def __init__(self, plane: Plane, *, dispatches: bool) -> None:
        self.plane = plane
        self.reporter = TrafficReporter(plane.engine, dispatches=dispatches)

    @property
    def ocr(self) -> ServiceTraffic:
        found = self.plane.traffic.services()
        return next(service for service in found if service.service == "ocr")


@pytest.fixture
async def dispatcher(plane: Plane) -> Member:
    return Member(plane, dispatches=True)


@pytest.fixture
async def api(plane: Plane) -> Member:
    return Member(await plane.replica(), dispatches=False)


async def exchange(*members: Member) -> None:
    """Twice, so that each has seen what the others have said."""
    for member in 2 * members:
        await member.reporter.run_once()


async def test_replies_that_another_process_takes_are_heard(
    dispatcher: Member, api: Member
) -> None:
    await exchange(dispatcher, api)
    plane = dispatcher.plane
    await plane.submit()
    directive = await plane.directive()
    assert (dispatcher.ocr.unacknowledged, dispatcher.ocr.working) == (1, 0)
    plane.later(seconds=3)
    await api.plane.reply(ack(directive))
    await exchange(api, dispatcher)
    assert (dispatcher.ocr.unacknowledged, dispatcher.ocr.working) == (0, 1)
    assert not plane.traffic.is_absent("ocr", plane.clock.now - timedelta(milliseconds=1))
    await api.plane.reply(result(directive))
    await exchange(api, dispatcher)
    assert (dispatcher.ocr.unacknowledged, dispatcher.ocr.working) == (0, 0)


async def test_every_process_sees_what_the_dispatcher_has_sent(
    dispatcher: Member, api: Member
) -> None:
    await dispatcher.plane.submit()
    await dispatcher.plane.dispatch()
    await exchange(dispatcher, api)
    assert api.ocr == dispatcher.ocr._replace(presence=Presence.UNKNOWN)
    assert (api.ocr.unacknowledged, api.ocr.window) == (1, 1000)


async def test_dispatchers_share_the_room_as_long_as_they_live(dispatcher: Member) -> None:
    other = Member(await dispatcher.plane.replica(), dispatches=True)
    await exchange(dispatcher, other)
    ranks = sorted(member.plane.traffic.rank for member in (dispatcher, other))
    assert (ranks, dispatcher.plane.traffic.dispatchers) == ([0, 1], 2)
    dispatcher.plane.later(LIFE + timedelta(seconds=1))
    await exchange(dispatcher)
    assert (dispatcher.plane.traffic.rank, dispatcher.plane.traffic.dispatchers) == (0, 1)


async def test_a_process_without_a_dispatcher_takes_no_share(
    dispatcher: Member, api: Member
) -> None:
    await exchange(dispatcher, api)
    assert dispatcher.plane.traffic.dispatchers == 1


async def test_what_a_dead_process_had_with_services_is_forgotten(
    dispatcher: Member, api: Member
) -> None:
    await dispatcher.plane.submit()
    await dispatcher.plane.dispatch()
    await exchange(dispatcher, api)
    api.plane.later(LIFE + timedelta(seconds=1))
    await exchange(api)
    assert api.ocr.unacknowledged == 0


async def test_a_process_that_starts_knows_what_is_with_services(dispatcher: Member) -> None:
    plane = dispatcher.plane
    for number in range(3):
        await plane.submit(request(idempotency_key=f"k-{number}"))
    await plane.dispatch()
    first, *_ = await plane.directives()
    await plane.reply(ack(first))
    plane.later(LIFE + timedelta(seconds=1))
    again = Member(await plane.replica(), dispatches=True)
    await again.reporter.restore()
    assert (again.ocr.unacknowledged, again.ocr.working) == (2, 1)


async def test_beside_others_that_know_nothing_is_restored(dispatcher: Member) -> None:
    await dispatcher.plane.submit()
    await dispatcher.plane.dispatch()
    await exchange(dispatcher)
    second = Member(await dispatcher.plane.replica(), dispatches=True)
    await second.reporter.restore()
    assert second.ocr.unacknowledged == 1  # the other's


async def test_signs_of_life_outlive_the_process_that_heard_them(dispatcher: Member) -> None:
    plane = dispatcher.plane
    await plane.working()
    heard = plane.clock.now
    await exchange(dispatcher)
    plane.later(hours=2)
    again = Member(await plane.replica(), dispatches=True)
    await again.reporter.restore()
    assert again.ocr.heard_at == heard.replace(microsecond=heard.microsecond // 1000 * 1000)


async def test_who_stops_leaves_at_once(dispatcher: Member, api: Member) -> None:
    async with running([dispatcher.reporter]):
        await dispatcher.plane.detour.called("publish_report")
        await exchange(api)
        assert api.plane.traffic.is_shared
    await exchange(api)
    assert not api.plane.traffic.is_shared


async def test_a_job_that_nothing_is_heard_of_is_looked_at(dispatcher: Member) -> None:
    """Its reply was taken by a process that died before it said so."""
    plane = dispatcher.plane
    await plane.submit()
    directive = await plane.directive()
    dying = await plane.replica()
    await dying.reply(ack(directive))
    plane.later(seconds=36)
    await exchange(dispatcher)
    assert (dispatcher.ocr.unacknowledged, dispatcher.ocr.working) == (0, 1)


async def test_a_job_that_is_gone_is_forgotten(dispatcher: Member) -> None:
    plane = dispatcher.plane
    await plane.submit()
    await plane.dispatch()
    plane.detour.answers["load"] = None
    plane.later(seconds=36)
    await exchange(dispatcher)
    assert dispatcher.ocr.unacknowledged == 0


@pytest.mark.parametrize("document", ["", "[]", "{}", '{"services": {"ocr": [1]}, "moves": []}'])
async def test_a_report_of_another_release_is_passed_over(
    dispatcher: Member, document: str
) -> None:
    plane = dispatcher.plane
    await plane.ledger.publish_report(TrafficReport("newer", plane.clock.now, document))
    await exchange(dispatcher)
    assert plane.traffic.dispatchers == 1


async def test_a_report_has_its_limit(dispatcher: Member, api: Member) -> None:
    """Of moves the latest are told; what is left out is found in the ledger."""
    await exchange(dispatcher, api)
    for number in range(700):
        directive = await dispatcher.plane.working(request(idempotency_key=f"k-{number}"))
        api.plane.traffic.is_shared = True
        await api.plane.reply(result(directive))
    await exchange(api)
    reports = await api.plane.ledger.reports(api.plane.clock.now)
    sizes = [len(report.document) for report in reports]
    assert 15_000 < max(sizes) <= REPORT_LIMIT
    await exchange(dispatcher)
    assert 0 < dispatcher.ocr.working < 700
