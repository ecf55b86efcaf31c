"""Draws the pictures of docs/explanation/slow-services.md from runs in virtual time.

python -m tests.engine.pictures
"""

import asyncio
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from lucius_bus.memory import MemoryBus
from lucius_orchestrator.domain.window import Limits
from tests.engine.plane import Plane, configured, request
from tests.engine.services import Town
from tests.ledger.backends import Clock, SqliteBackend

FOLDER = Path(__file__).parents[2] / "docs" / "explanation" / "pictures"
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 300, 56, 150, 34, 40
COLOURS = ("#2563eb", "#d97706", "#059669", "#dc2626")
UNLIMITED = configured()


class Chart(NamedTuple):
    title: str
    seconds: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    unit: str = "seconds"
    band: tuple[float, float, str] | None = None
    """From when to when something was different, and what."""


def svg(chart: Chart) -> str:
    longest = chart.seconds[-1]
    highest = max(max(values) for values in chart.lines.values()) or 1

    def x(second: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * second / longest

    def y(value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * value / highest

    def text(at: float, height: float, what: str, anchor: str = "middle") -> str:
        return f'<text x="{at:.0f}" y="{height:.0f}" text-anchor="{anchor}">{what}</text>'

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12" fill="#6b7280">',
        f'<text x="{LEFT}" y="18" font-size="14" fill="#374151">{chart.title}</text>',
    ]
    if chart.band is not None:
        begin, end, what = chart.band
        width = x(end) - x(begin)
        parts.append(
            f'<rect x="{x(begin):.1f}" y="{TOP}" width="{width:.1f}" '
            f'height="{HEIGHT - TOP - BOTTOM}" fill="#9ca3af" opacity="0.25"/>'
        )
        parts.append(text((x(begin) + x(end)) / 2, TOP + 14, what))
    for part in range(5):
        value, second = highest * part / 4, longest * part / 4
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" '
            'stroke="#9ca3af" stroke-width="0.4"/>'
        )
        parts.append(text(LEFT - 8, y(value) + 4, f"{value:.0f}", "end"))
        shown = second / 60 if chart.unit == "minutes" else second
        parts.append(text(x(second), HEIGHT - BOTTOM + 18, f"{shown:.0f}"))
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, chart.unit))
    for number, (name, values) in enumerate(chart.lines.items()):
        colour = COLOURS[number]
        points = " ".join(
            f"{x(second):.1f},{y(value):.1f}"
            for second, value in zip(chart.seconds, values, strict=True)
        )
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        height = TOP + 16 + 18 * number
        parts.append(f'<text x="{WIDTH - RIGHT + 12}" y="{height}" fill="{colour}">{name}</text>')
    return "\n".join([*parts, "</svg>\n"])


class Recording:
    """Looks at a town each second."""

    def __init__(self, town: Town, numbers: Callable[[], Mapping[str, float]]) -> None:
        self._town = town
        self._numbers = numbers
        self._began = town.plane.clock.now
        self.seconds: list[float] = []
        self.lines: dict[str, list[float]] = {}

    async def passes(self, seconds: int) -> None:
        for _ in range(seconds):
            for name, number in self._numbers().items():
                self.lines.setdefault(name, []).append(number)
            passed = self._town.plane.clock.now - self._began
            self.seconds.append(passed.total_seconds())
            await self._town.passes(timedelta(seconds=1))


async def submit(town: Town, tenant: str, count: int) -> list[str]:
    return [
        await town.plane.submit(
            request(UNLIMITED, tenant_id=tenant, idempotency_key=f"k-{next(town.requests)}")
        )
        for _ in range(count)
    ]


def ocr(town: Town) -> tuple[int, int, float]:
    found = next(each for each in town.plane.traffic.services() if each.service == "ocr")
    return found.unacknowledged, found.working, found.window


async def a_queue(town: Town) -> Chart:
    service = town.service(slots=1, seconds=5)
    await submit(town, "acme", 60)

    def numbers() -> Mapping[str, float]:
        with_service, working, _ = ocr(town) if town.plane.traffic.services() else (0, 0, 0.0)
        begun = sum(service.runs.values())
        return {
            "waiting in the outbox": 60 - begun - with_service,
            "on the bus": with_service,
            "done": begun - working,
        }

    recording = Recording(town, numbers)
    await recording.passes(310)
    title = "60 jobs of 5 s, one slot, ACK timeout 30 s: no attempt is lost"
    return Chart(title, recording.seconds, recording.lines)


async def an_outage(town: Town) -> Chart:
    service = town.service(slots=2, seconds=2)
    await submit(town, "acme", 400)

    def numbers() -> Mapping[str, float]:
        with_service, working, window = ocr(town) if town.plane.traffic.services() else (0, 0, 1)
        return {
            "done": sum(service.runs.values()) - working,
            "window": window,
            "on the bus": with_service,
        }

    recording = Recording(town, numbers)
    await recording.passes(120)
    service.is_up = False
    await recording.passes(480)
    service.is_up = True
    await recording.passes(300)
    return Chart(
        "400 jobs of 2 s, two slots; the service is down for 8 minutes",
        recording.seconds,
        recording.lines,
        "minutes",
        (120, 600, "down"),
    )


async def tenants(town: Town) -> Chart:
    service = town.service(slots=2, seconds=1)
    owners = dict.fromkeys(await submit(town, "big", 300), "big tenant (300)")

    def numbers() -> Mapping[str, float]:
        done = {"big tenant (300)": 0.0, "five small (10 each)": 0.0}
        for job_id, _ in service.runs:
            done[owners[job_id]] += 1
        return done

    recording = Recording(town, numbers)
    await recording.passes(30)
    for number in range(5):
        jobs = await submit(town, f"small-{number}", 10)
        owners |= dict.fromkeys(jobs, "five small (10 each)")
    await recording.passes(90)
    return Chart(
        "Jobs begun, by tenants; the small ones come after 30 s",
        recording.seconds,
        recording.lines,
    )


PICTURES = {"a-queue": a_queue, "an-outage": an_outage, "tenants": tenants}


async def draw(name: str) -> str:
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        backend, bus = SqliteBackend(clock, Path(folder)), MemoryBus(clock)
        await backend.start()
        try:
            return svg(await PICTURES[name](Town(Plane.new(backend, bus, Limits()))))
        finally:
            await bus.close()
            await backend.stop()


def main() -> None:
    for name in PICTURES:
        (FOLDER / f"{name}.svg").write_text(asyncio.run(draw(name)), encoding="ascii")


if __name__ == "__main__":
    main()
