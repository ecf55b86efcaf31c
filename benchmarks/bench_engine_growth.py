"""CPU per job as the ledger grows from 10³ to 10⁶ jobs.

The large ledger is a copy of the small one, into which a finished job's rows are multiplied: its
steps, events, idempotency entry and delivered directives included. Then both do the same work, in
turns. Takes some seven minutes, and 16 GB below the folder for temporary files.
"""

import asyncio
import shutil
import sqlite3
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.engine import Measured, drive
from benchmarks.report import report
from lucius_orchestrator.adapters.ledger.sqlite import SqliteLedger

TARGET = 1.3
SMALL, LARGE = 1_000, 1_000_000
JOBS, ROUNDS = 1_500, 5
_CHUNK = 50_000

# Old ids: the copies lie before everything that is created from now on.
_ID = "printf('job_%032x', :first + n)"
_COPIES = (
    "CREATE TEMP TABLE numbers (n INTEGER PRIMARY KEY)",
    """CREATE TEMP TABLE job AS SELECT * FROM lucius_ledger_jobs
       WHERE state = 'SUCCEEDED' ORDER BY job_no LIMIT 1""",
)


def _columns(connection: sqlite3.Connection, table: str, *changed: str) -> str:
    rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
    return ", ".join(name for _, name, *_ in rows if name not in changed)


def _statements(connection: sqlite3.Connection) -> list[str]:
    jobs = _columns(connection, "lucius_ledger_jobs", "job_no", "job_id", "idempotency_entry")
    steps = _columns(connection, "lucius_ledger_steps", "step_no")
    events = _columns(connection, "lucius_ledger_events", "job_no")
    outbox = _columns(connection, "lucius_outbox_messages", "seq", "id", "dedupe_key")
    of_job = "(SELECT job_no FROM job)"
    return [
        f"""INSERT INTO lucius_ledger_jobs (job_no, job_id, idempotency_entry, {jobs})
            SELECT :base + n, {_ID}, 'hash:' || lower(hex(randomblob(32))), {jobs}
            FROM numbers, job""",
        f"""INSERT INTO lucius_ledger_plans SELECT :base + n, document
            FROM numbers, (SELECT document FROM lucius_ledger_plans WHERE job_no = {of_job})""",
        f"""INSERT INTO lucius_ledger_steps (step_no, {steps})
            SELECT 32 * (:base + n) + step_no % 32, {steps} FROM numbers,
            (SELECT * FROM lucius_ledger_steps
             WHERE step_no BETWEEN 32 * {of_job} AND 32 * {of_job} + 31)""",
        f"""INSERT INTO lucius_ledger_events (job_no, {events}) SELECT :base + n, {events}
            FROM numbers, (SELECT * FROM lucius_ledger_events WHERE job_no = {of_job})""",
        """INSERT INTO lucius_ledger_idempotency
           SELECT tenant_id, idempotency_entry, substr(idempotency_entry, 6), job_id
           FROM lucius_ledger_jobs WHERE job_no > :base""",
        f"""INSERT INTO lucius_outbox_messages (id, dedupe_key, {outbox})
            SELECT lower(hex(randomblob(16))), {_ID} || substr(dedupe_key, 37), {outbox}
            FROM numbers, (SELECT * FROM lucius_outbox_messages
                           WHERE dedupe_key LIKE (SELECT job_id FROM job) || '.%')""",
    ]


def grow(path: Path, jobs: int) -> None:
    """Multiply a finished job until the ledger holds that many."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("PRAGMA cache_size = -1000000")
    for statement in _COPIES:
        connection.execute(statement)
    statements = _statements(connection)
    (count,) = connection.execute("SELECT count(*) FROM lucius_ledger_jobs").fetchone()
    for first in range(0, jobs - count, _CHUNK):
        size = min(_CHUNK, jobs - count - first)
        connection.execute("BEGIN")
        connection.execute("DELETE FROM numbers")
        connection.executemany("INSERT INTO numbers VALUES (?)", ((n,) for n in range(1, size + 1)))
        (base,) = connection.execute("SELECT max(job_no) FROM lucius_ledger_jobs").fetchone()
        for statement in statements:
            connection.execute(statement, {"base": base, "first": first})
        connection.execute("COMMIT")
        print(f"{count + first + size} jobs", file=sys.stderr)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


async def measure(path: Path, first: int, jobs: int) -> Measured:
    ledger = await SqliteLedger.open(path)
    try:
        return await drive(ledger, first, jobs)
    finally:
        await ledger.close()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        small, large = Path(folder) / "small.db", Path(folder) / "large.db"
        asyncio.run(measure(small, 0, SMALL))
        shutil.copy(small, large)
        grow(large, LARGE)
        cpu: dict[Path, list[float]] = {small: [], large: []}
        for round_no in range(ROUNDS):
            for path, found in cpu.items():
                first = SMALL + LARGE + round_no * JOBS
                found.append(asyncio.run(measure(path, first, JOBS)).cpu_per_job)
        ratios = [high / low for low, high in zip(cpu[small], cpu[large], strict=True)]
        report(
            "engine_growth",
            median(ratios),
            TARGET,
            at_most=True,
            small_us_per_job=median(cpu[small]) * 1e6,
            large_us_per_job=median(cpu[large]) * 1e6,
            gigabytes=large.stat().st_size / 1e9,
            lowest=min(ratios),
            highest=max(ratios),
        )


if __name__ == "__main__":
    main()
