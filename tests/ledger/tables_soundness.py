"""What must be true of the rows of a table ledger: at every moment, and after a repair."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection

from lucius_contract.routing import Mode
from lucius_contract.states import TERMINAL_JOB_STATES, OutboxState
from lucius_orchestrator.adapters.ledger.tables import (
    entries,
    indexes,
    keys,
    leading,
    reports,
    slots,
)
from lucius_orchestrator.adapters.ledger.tables.partition import JOB, JOBS, Place
from lucius_orchestrator.adapters.ledger.tables.store import MemoryTables, Row, Tables
from lucius_orchestrator.domain.aggregate import Aggregate, Job
from lucius_orchestrator.domain.timers import next_due

Check = Callable[[Tables], Awaitable[None]]


async def rows_of(tables: Tables, table: str) -> list[Row]:
    unseen = tables.shared() if isinstance(tables, MemoryTables) else tables
    return await unseen.scan(table, ("", ""), keys.END, 100_000)


async def places(tables: Tables, table: str) -> set[Place]:
    """Of the rows that lead to a job: a lease on a lane and a report lead nowhere."""
    rows = await rows_of(tables, table)
    elsewhere = leading.LEASES, reports.REPORTS
    return {Place(table, row.partition, row.key) for row in rows if row.partition not in elsewhere}


class Rows:
    """All partitions of jobs, as they are now. What workflows were told is known by who told it:
    nothing in the partition says so."""

    def __init__(self, rows: list[Row], told: Collection[str] = ()) -> None:
        self.heads = {row.partition: row for row in rows if row.key == JOB and "job" in row.values}
        self.tombstones = {
            row.partition for row in rows if row.key == JOB and "job" not in row.values
        }
        self.outbox = [row for row in rows if row.key.startswith("OUTBOX!")]
        self.letters = [row for row in rows if row.key.startswith("LETTER!")]
        self.orphans = [
            row
            for row in rows
            if row.partition not in self.heads and row.key[:4] in ("EVEN", "JOB!", "OUTB")
        ]
        self._rows = rows
        self._told = told

    @classmethod
    async def read(cls, tables: Tables, told: Collection[str] = ()) -> "Rows":
        return cls(await rows_of(tables, JOBS), told)

    @property
    def jobs(self) -> dict[str, Job]:
        return {name: row.values["job"] for name, row in self.heads.items()}

    @property
    def in_flight(self) -> dict[str, Job]:
        return {
            name: job for name, job in self.jobs.items() if job.state not in TERMINAL_JOB_STATES
        }

    @property
    def leashes(self) -> set[Place]:
        return {self.heads[name].values["leash"] for name in self.in_flight}

    @property
    def pending(self) -> set[Place]:
        return {row.values["pending"] for row in self._unsent}

    @property
    def unsent(self) -> set[str]:
        return {row.values["row"].outbox_id for row in self._unsent}

    @property
    def _unsent(self) -> list[Row]:
        return [
            row
            for row in self.outbox
            if row.values.get("state", OutboxState.PENDING) is OutboxState.PENDING
            and row.values["row"].outbox_id not in self._told
            and row.partition in self.heads
        ]

    @property
    def ended(self) -> set[Place]:
        return {self.heads[name].values["ended"] for name in self.jobs.keys() - self.in_flight}

    @property
    def webhooks(self) -> set[str]:
        """What the jobs that ended have to tell: how the keys of the rows end."""
        return {
            f"{self.heads[name].values['ended'].row.partition('!')[2]}!{position:02d}"
            for name, job in self.jobs.items()
            if name not in self.in_flight
            for position, _ in enumerate(job.callback_urls)
        }

    @property
    def letter_places(self) -> set[Place]:
        return {row.values["index"] for row in self.letters}

    @property
    def listed(self) -> set[Place]:
        return {indexes.listed(job.tenant_id, job.job_id) for job in self.jobs.values()}

    @property
    def entries(self) -> dict[str, str]:
        """Partition of the entry, and the job that it stands for."""
        found = {}
        for row in self.heads.values():
            partition = keys.key(row.values["tenant_id"], row.values["entry"])
            found[partition] = row.values["job"].job_id
        return found

    @property
    def slots(self) -> Counter[tuple[str, str]]:
        """The slots that the jobs in flight must have: scope and job."""
        return Counter(
            (share.partition, job.job_id)
            for job in self.in_flight.values()
            for share in slots.shares(job.tenant_id, job.route.mode, job.job_id)
        )

    def aggregate(self, name: str) -> Aggregate:
        steps = [
            row.values["step"]
            for row in self._rows
            if row.partition == name and row.key.startswith("JOB!")
        ]
        return Aggregate(self.jobs[name], tuple(steps))


async def taken(tables: Tables) -> Counter[tuple[str, str]]:
    rows = await rows_of(tables, slots.TABLE)
    return Counter((row.partition, row.values["job_id"]) for row in rows if row.key != "COUNT")


async def webhooks(tables: Tables, *, announced: bool = False) -> set[str]:
    """How the keys of the rows end; of those that depend on a job, if it is asked for."""
    rows = await rows_of(tables, indexes.WEBHOOKS)
    wanted = (row for row in rows if not announced or row.values["base"] is not None)
    return {row.key.split("!", 2)[2] for row in wanted}


async def never_too_little(tables: Tables, told: Collection[str] = ()) -> None:
    """Holds between any two calls of any writers."""
    rows = await Rows.read(tables, told)
    assert rows.leashes <= await places(tables, indexes.TIMERS)
    assert rows.pending <= await places(tables, indexes.PENDING)
    assert rows.listed <= await places(tables, indexes.JOBLIST)
    assert rows.letter_places <= await places(tables, indexes.LETTERS)
    assert not rows.slots - await taken(tables), "a job in flight that is not counted"
    for name, head in rows.heads.items():
        deadline, timer = next_due(rows.aggregate(name)), head.values["timer"]
        assert deadline is None or timer.at <= deadline.at
    await _slots_are_counted(tables)


async def never_too_little_while_jobs_stay(tables: Tables, told: Collection[str] = ()) -> None:
    """What holds as long as no removal is under way, which begins with the entry, and nobody
    delivers webhooks."""
    await never_too_little(tables, told)
    rows = await Rows.read(tables)
    assert not rows.orphans
    assert rows.ended <= await places(tables, indexes.ENDED)
    assert rows.entries.items() <= (await _entries(tables)).items()
    assert rows.webhooks <= await webhooks(tables), "an end that nobody is told"


async def nothing_too_much(tables: Tables, told: Collection[str] = ()) -> None:
    """Holds after a repair, if no writer is under way."""
    await never_too_little_while_jobs_stay(tables, told)
    rows = await Rows.read(tables, told)
    assert rows.leashes == await places(tables, indexes.TIMERS)
    assert rows.pending == await places(tables, indexes.PENDING)
    assert rows.listed == await places(tables, indexes.JOBLIST)
    assert rows.letter_places == await places(tables, indexes.LETTERS)
    assert rows.entries == await _entries(tables)
    assert rows.slots == await taken(tables), "a slot of no job in flight"
    assert await webhooks(tables, announced=True) <= rows.webhooks


async def _slots_are_counted(tables: Tables) -> None:
    rows = await rows_of(tables, slots.TABLE)
    held = Counter(row.partition for row in rows if row.key != "COUNT")
    counted = {row.partition: row.values["jobs"] for row in rows if row.key == "COUNT"}
    assert {name: count for name, count in counted.items() if count} == dict(held)
    for row in rows:
        if row.key == "COUNT" and row.partition.startswith("total!"):
            assert row.values["jobs"] == sum(row.values.get(mode.value, 0) for mode in Mode)


async def _entries(tables: Tables) -> dict[str, str]:
    rows = await rows_of(tables, entries.TABLE)
    return {row.partition: row.values["job_id"] for row in rows}
