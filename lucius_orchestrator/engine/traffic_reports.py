"""What processes tell each other of services, as rows of the ledger.

Each process replaces its own report when something has changed, at most once a second, and reads
those of the others. A report that is not renewed for a while is that of a process that died: its
directives count for a little longer, its moves for nothing.
"""

import asyncio
import json
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from lucius_bus.waiting import until_set
from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.domain.timers import TimerKind
from lucius_orchestrator.engine.engine import LedgerEngine
from lucius_orchestrator.engine.service_load import Instance, Seen
from lucius_orchestrator.engine.traffic import Move
from lucius_orchestrator.ports.ledger import REPORT_LIMIT, LedgerError, TrafficReport

_WITH_SERVICES = frozenset(
    {TimerKind.ACK, TimerKind.LEASE, TimerKind.CEILING, TimerKind.RETRY, TimerKind.WORKFLOW}
)
_ANY_TIME = timedelta(days=365)
_MOVE_LENGTH = 40
_MOVES_KEPT = timedelta(seconds=10)
_REMEMBERED = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class ReportSettings:
    """A process that has not reported for `life` is dead. `restored` is how many jobs are read
    after a start, `checked` how many at a time when nothing was heard of them."""

    interval: timedelta = timedelta(seconds=1)
    renewal: timedelta = timedelta(seconds=5)
    life: timedelta = timedelta(seconds=15)
    restored: int = 5000
    checked: int = 20


class Report(NamedTuple):
    """A report as it is read. `first_move` numbers the moves of a process."""

    process_id: str
    at: datetime
    dispatches: bool
    services: Mapping[str, Seen]
    first_move: int
    moves: Sequence[Move]


class TrafficReporter:
    """Runs by `run()` until `stop()`. Keeps the traffic of this process in step with what other
    processes commit. One that `dispatches` shares the room of each service with the others that
    do."""

    def __init__(
        self, engine: LedgerEngine, *, dispatches: bool, settings: ReportSettings | None = None
    ) -> None:
        self._engine = engine
        self._traffic = engine.traffic
        self._dispatches = dispatches
        self._settings = settings or ReportSettings()
        self._process_id = engine.world.entropy(16).hex()
        self._published = ""
        self._published_at = datetime.min.replace(tzinfo=UTC)
        self._moves: list[Move] = []
        self._first_move = 0
        self._applied: dict[str, int] = {}
        self._stopping = asyncio.Event()
        self._stopped = asyncio.Event()
        self._stopped.set()

    async def stop(self) -> None:
        self._stopping.set()
        await self._stopped.wait()

    async def run(self) -> None:
        self._stopped.clear()
        try:
            await self.restore()
            while not self._stopping.is_set():
                await self.run_once()
                await until_set(self._stopping, self._settings.interval)
            await self._guarded(self._engine.ledger.withdraw_report(self._process_id))
        finally:
            self._stopped.set()

    async def run_once(self) -> None:
        """Report, read the reports of others, and look at what nothing was heard of. A ledger that
        fails is logged; the next round tries again."""
        await self._guarded(self._exchange())

    async def restore(self) -> None:
        """Learn from the ledger what was with services when this process began, unless others who
        know are there."""
        await self._guarded(self._restore())

    async def _exchange(self) -> None:
        await self._publish()
        await self._read(self._settings.life)
        self._traffic.tick()
        for job_id in self._traffic.in_doubt(self._settings.checked):
            await self._look_at(job_id)

    async def _restore(self) -> None:
        await self._read(_REMEMBERED)
        if not self._dispatches or self._traffic.dispatchers > 1:
            return
        before = self._engine.world.clock() + _ANY_TIME
        due = await self._engine.ledger.due(_WITH_SERVICES, before, self._settings.restored)
        for job_id, _ in due:
            await self._look_at(job_id)

    async def _guarded(self, act: Awaitable[None]) -> None:
        try:
            await act
        except LedgerError as error:
            self._engine.telemetry.reports_failed(error)

    async def _look_at(self, job_id: str) -> None:
        try:
            self._traffic.restore((await self._engine.read(job_id)).aggregate)
        except ContractError as error:
            if error.code is not ErrorCode.JOB_NOT_FOUND:
                raise
            self._traffic.forget(job_id)

    async def _publish(self) -> None:
        now = self._engine.world.clock()
        self._gather_moves(now)
        document = _encoded(
            self._traffic.seen(dispatches=self._dispatches),
            self._first_move,
            self._moves,
            dispatches=self._dispatches,
        )
        is_due = now - self._published_at >= self._settings.renewal
        if is_due or (self._traffic.is_shared and document != self._published):
            await self._engine.ledger.publish_report(TrafficReport(self._process_id, now, document))
            self._published, self._published_at = document, now

    def _gather_moves(self, now: datetime) -> None:
        fresh, self._traffic.moves = self._traffic.moves, []
        self._moves += fresh
        old = next(
            (n for n, move in enumerate(self._moves) if now - move.at < _MOVES_KEPT),
            len(self._moves),
        )
        self._first_move += old
        del self._moves[:old]

    async def _read(self, life: timedelta) -> None:
        now = self._engine.world.clock()
        found = await self._engine.ledger.reports(now - life)
        others = [
            report
            for each in found
            if each.process_id != self._process_id and (report := _decoded(each)) is not None
        ]
        alive = [report for report in others if now - report.at <= self._settings.life]
        ids = sorted({r.process_id for r in alive if r.dispatches} | {self._process_id})
        dispatchers = len(ids) if self._dispatches else max(len(ids) - 1, 1)
        self._traffic.is_shared = bool(alive)
        self._traffic.learn(
            [
                report.services
                if report in alive
                else {name: Seen(heard_at=seen.heard_at) for name, seen in report.services.items()}
                for report in others
            ],
            dispatchers,
            ids.index(self._process_id) if self._dispatches else 0,
        )
        for report in alive:
            self._apply(report)

    def _apply(self, report: Report) -> None:
        """Only what is new since the last look."""
        applied = self._applied.get(report.process_id, 0)
        self._traffic.apply(report.moves[max(applied - report.first_move, 0) :])
        self._applied[report.process_id] = report.first_move + len(report.moves)


def _encoded(
    services: Mapping[str, Seen], first: int, moves: Sequence[Move], *, dispatches: bool
) -> str:
    """Return a report as text; of moves the latest that there is room for."""
    body = {
        "dispatches": dispatches,
        "services": {name: _plain(seen) for name, seen in services.items()},
    }
    size = len(json.dumps(body)) + 100
    room = max((REPORT_LIMIT - size) // _MOVE_LENGTH, 0)
    kept = moves[max(len(moves) - room, 0) :]
    body["first_move"] = first + len(moves) - len(kept)
    body["moves"] = [[m.digest, m.state, round(m.at.timestamp() * 1000)] for m in kept]
    return json.dumps(body, separators=(",", ":"))


def _plain(seen: Seen) -> list[Any]:
    heard_at, *numbers, instances = seen
    plain = {name: [slots, round(at.timestamp() * 1000)] for name, (slots, at) in instances.items()}
    return [None if heard_at is None else round(heard_at.timestamp() * 1000), *numbers, plain]


def _decoded(report: TrafficReport) -> Report | None:
    """Return None for a report of a release that writes them in another form."""
    try:
        body = json.loads(report.document)
        services = {name: _seen(plain) for name, plain in body["services"].items()}
        moves = [Move(digest, state, _moment(at)) for digest, state, at in body["moves"]]
        return Report(
            report.process_id, report.at, body["dispatches"], services, body["first_move"], moves
        )
    except (KeyError, TypeError, ValueError):
        return None


def _seen(plain: list[Any]) -> Seen:
    heard_at, unacknowledged, working, rate, window, absent, has_backlog, instances = plain
    found = {name: Instance(slots, _moment(at)) for name, (slots, at) in instances.items()}
    return Seen(
        None if heard_at is None else _moment(heard_at),
        unacknowledged,
        working,
        rate,
        window,
        absent,
        has_backlog,
        found,
    )


def _moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)
