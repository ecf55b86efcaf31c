"""Directives that wait are counted rarely, once for all who ask."""

import asyncio
from collections.abc import Sequence

import pytest

from lucius_contract.routing import lane_of
from lucius_orchestrator.engine.backlogs import Backlogs
from lucius_orchestrator.engine.service_load import Presence
from lucius_orchestrator.engine.services import standings
from lucius_orchestrator.engine.traffic import Traffic
from lucius_orchestrator.ports.ledger import Backlog, LedgerUnavailable
from tests.engine.plane import TENANT, Plane

LANE = lane_of(TENANT)


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def backlogs(plane: Plane, seconds: Seconds) -> Backlogs:
    return Backlogs(plane.engine.ledger, seconds)


async def waiting(backlogs: Backlogs) -> list[int]:
    return [row.waiting for row in await backlogs.read()]


async def test_a_count_serves_for_two_seconds(
    plane: Plane, backlogs: Backlogs, seconds: Seconds
) -> None:
    await plane.submit()
    assert await waiting(backlogs) == [1]
    await plane.dispatch()
    seconds.now = 2.0
    assert await waiting(backlogs) == [1]
    seconds.now = 2.1
    assert await waiting(backlogs) == []


async def test_a_count_that_took_long_serves_longer(
    plane: Plane, backlogs: Backlogs, seconds: Seconds
) -> None:
    async def pass_slowly() -> None:
        seconds.now += 10

    plane.detour.after["backlogs"] = pass_slowly
    await backlogs.read()
    seconds.now += 90
    await backlogs.read()
    assert plane.detour.calls["backlogs"] == 1
    seconds.now += 1
    await backlogs.read()
    assert plane.detour.calls["backlogs"] == 2


async def test_all_who_come_meanwhile_wait_for_the_same_count(
    plane: Plane, backlogs: Backlogs
) -> None:
    await plane.submit()
    assert await asyncio.gather(*(waiting(backlogs) for _ in range(9))) == [[1]] * 9
    assert plane.detour.calls["backlogs"] == 1


async def test_a_count_goes_on_when_the_one_who_asked_gives_up(
    plane: Plane, backlogs: Backlogs
) -> None:
    gate = asyncio.Event()

    async def wait() -> None:
        await gate.wait()

    plane.detour.after["backlogs"] = wait
    await plane.submit()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await backlogs.read()
    gate.set()
    assert await waiting(backlogs) == [1]
    assert plane.detour.calls["backlogs"] == 1


async def test_a_count_under_way_ends_when_they_are_closed(
    plane: Plane, backlogs: Backlogs
) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    plane.detour.after["backlogs"] = wait
    reading = asyncio.create_task(waiting(backlogs))
    await asyncio.sleep(0)
    await backlogs.close()
    with pytest.raises(asyncio.CancelledError):
        await reading
    await backlogs.close()


async def test_a_count_that_fails_is_made_again(
    plane: Plane, backlogs: Backlogs, seconds: Seconds
) -> None:
    await plane.submit()
    await backlogs.read()
    seconds.now = 3.0
    plane.detour.fail("backlogs")
    with pytest.raises(LedgerUnavailable):
        await backlogs.read()
    last = backlogs.last("ocr", LANE)
    assert last is not None
    assert last.waiting == 1
    plane.detour.heal()
    await plane.dispatch()
    assert await waiting(backlogs) == []
    assert backlogs.last("ocr", LANE) is None


async def test_what_was_counted_is_looked_up_without_io_while_it_is_young(
    plane: Plane, backlogs: Backlogs, seconds: Seconds
) -> None:
    await plane.submit()
    assert backlogs.last("ocr", LANE) is None
    await backlogs.read()
    seconds.now = 60.0
    last = backlogs.last("ocr", LANE)
    assert last is not None
    assert last.waiting == 1
    assert backlogs.last("ocr", LANE + 1) is None
    assert backlogs.last("embedding", LANE) is None
    seconds.now = 61.0
    assert backlogs.last("ocr", LANE) is None


def names(plane: Plane, rows: Sequence[Backlog], *named: str) -> list[str]:
    return [found.service for found in standings(Traffic(plane.clock), rows, named, plane.clock())]


def test_every_service_that_is_known_somehow_is_listed_by_name(plane: Plane) -> None:
    now = plane.clock()
    rows = [Backlog("translate", lane, 2, now) for lane in (7, 3)]
    assert names(plane, rows, "ocr", "sis") == ["ocr", "sis", "translate"]
    *_, found = standings(Traffic(plane.clock), rows, ["ocr"], now)
    assert (found.waiting, [row.lane for row in found.lanes]) == (4, [3, 7])
    assert found.traffic.presence is Presence.UNKNOWN


def test_rows_of_an_older_release_are_shown_while_they_wait(plane: Plane) -> None:
    traffic = Traffic(plane.clock)
    traffic.claimed("job_1", "step_01", "", 0)
    now = plane.clock()
    assert standings(traffic, [], [], now) == []
    (found,) = standings(traffic, [Backlog("", 0, 1, now)], [], now)
    assert (found.service, found.waiting) == ("", 1)
