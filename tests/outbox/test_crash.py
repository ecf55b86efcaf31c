"""Producers and dispatchers, as processes, killed at random while they work through
thousands of messages.

What happened is read from two witnesses that a kill cannot silence: the database itself (the rows
`effects`, and a trigger that writes down every claim) and one journal per process, on which each
publish is a line.
"""

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from lucius_outbox import sqlite
from lucius_outbox.postgres.schema import MIGRATIONS
from tests.outbox.backends import TABLE
from tests.runner.deadlines import seconds, time_limit
from tests.runner.tiers import by_tier
from tests.runner.workload import Workload

MESSAGES = by_tier(1_500, 7_000, 20_000)
PRODUCERS, DISPATCHERS = 2, 2
KILLS = by_tier(3, 10)
"""Of each role, at least; up to ten times as many dispatchers, until one was killed when a message
was out and not marked so."""
KILL_AFTER = by_tier((50, 300), (50, 700))  # lines of the journals
LINE = 110  # bytes
DEADLINE = seconds(200)

pytestmark = time_limit(280)
_SCHEMA = """
CREATE TABLE effects (n integer PRIMARY KEY);
CREATE TABLE claims (id text, worker text, claim_no integer, before text, free_at {time},
                     at {time});
"""
_SQLITE_TRIGGER = f"""
CREATE TRIGGER witness AFTER UPDATE ON {TABLE}
WHEN new.status = 'processing'
     AND (old.claim_no IS NOT new.claim_no OR old.locked_by IS NOT new.locked_by)
BEGIN
    INSERT INTO claims VALUES (new.id, new.locked_by, new.claim_no, old.status, old.locked_until,
                               new.updated_at);
END
"""
_POSTGRES_TRIGGER = f"""
CREATE FUNCTION witness() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO claims VALUES (new.id::text, new.locked_by::text, new.claim_no, old.status,
                               old.locked_until, new.updated_at);
    RETURN NULL;
END $$;
CREATE TRIGGER witness AFTER UPDATE ON {TABLE} FOR EACH ROW
WHEN (new.status = 'processing' AND (old.claim_no IS DISTINCT FROM new.claim_no
                                     OR old.locked_by IS DISTINCT FROM new.locked_by))
EXECUTE FUNCTION witness();
"""


class Claim(NamedTuple):
    id: str
    worker: str
    claim_no: int
    before: str  # the row's status when it was claimed
    free_at: Any  # when the lease before this one ended
    at: Any


class Published(NamedTuple):
    number: int
    id: str
    worker: str
    claim_no: int
    ambiguous: bool
    at: int
    key: str


Query = Callable[[str], list[Any]]


@dataclass
class Site:
    """The processes, their journals, and the one who kills them."""

    address: str
    folder: Path
    query: Query
    dice: random.Random
    alive: dict[subprocess.Popen[bytes], tuple[str, Path]] = field(default_factory=dict)
    journals: list[Path] = field(default_factory=list)
    killed: Counter[str] = field(default_factory=Counter)
    killed_journals: set[Path] = field(default_factory=set)
    interrupted: int = 0
    """Dispatchers that were killed when they had published a message and not marked it so."""

    def start(self, role: str) -> None:
        number = len(self.journals) + 1
        journal = self.folder / f"{number}-{role}"
        command = [sys.executable, "-m", "tests.outbox.crash_process", role, self.address]
        first = number * 1_000_000
        process = subprocess.Popen([*command, str(journal), f"p{number}", str(first)])
        self.alive[process] = (role, journal)
        self.journals.append(journal)

    def kill(self, process: subprocess.Popen[bytes]) -> str:
        process.kill()
        assert process.wait(DEADLINE) == -signal.SIGKILL, "it had ended before it was killed"
        role, journal = self.alive.pop(process)
        self.killed[role] += 1
        self.killed_journals.add(journal)
        claimed = f"SELECT id, locked_by FROM {TABLE} WHERE status = 'processing'"
        held = {(str(row), str(worker)) for row, worker in self.query(claimed)}
        self.interrupted += any(
            (one.id, one.worker) in held and not one.ambiguous for one in published_in(journal)
        )
        return role

    def end(self, role: str) -> None:
        for process, (its_role, _) in list(self.alive.items()):
            if its_role == role:
                process.terminate()
                assert process.wait(DEADLINE) in (0, -signal.SIGTERM)
                del self.alive[process]

    def published(self) -> Iterator[tuple[Path, Published]]:
        for journal in self.journals:
            for one in published_in(journal):
                yield journal, one

    def is_tested(self) -> bool:
        """Enough have been killed, and some in the midst of what they must not do twice unseen."""
        if min(self.killed[role] for role in ("produce", "dispatch")) < KILLS:
            return False
        if self.killed["dispatch"] >= 10 * KILLS:
            return True
        return self.interrupted > 0 and any(one.ambiguous for _, one in self.published())

    def size(self) -> int:
        """Bytes written so far: cheap to look at, and it grows while anybody works."""
        return sum(journal.stat().st_size for journal in self.journals if journal.exists())

    def counted(self, statement: str) -> int:
        ((count,),) = self.query(statement)
        return int(count)


def published_in(journal: Path) -> Iterator[Published]:
    text = journal.read_text() if journal.exists() else ""
    for line in text.split("\n")[:-1]:
        kind, *fields = line.split("\t")
        if kind == "published":
            n, row, worker, claim_no, ambiguous, at, key = fields
            yield Published(int(n), row, worker, int(claim_no), ambiguous == "1", int(at), key)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"not in {DEADLINE} s: {what}"
        time.sleep(0.02)


def work_and_kill(site: Site) -> None:
    """A process dies whenever the others have got a random bit further, and another begins."""
    for role, count in (("produce", PRODUCERS), ("dispatch", DISPATCHERS)):
        for _ in range(count):
            site.start(role)
    workload = Workload(MESSAGES, enough=site.is_tested)
    while workload.wants_more(site.counted("SELECT count(*) FROM effects")):
        goal = site.size() + LINE * site.dice.randint(*KILL_AFTER)
        wait_until(lambda goal=goal: site.size() >= goal, "somebody works")  # type: ignore[misc]
        site.start(site.kill(site.dice.choice(list(site.alive))))
    for process, (role, _) in list(site.alive.items()):
        if role == "produce":
            site.kill(process)
    live = f"SELECT count(*) FROM {TABLE} WHERE status IN ('pending', 'processing')"
    wait_until(lambda: site.counted(live) == 0, "everything is delivered")
    site.end("dispatch")


def judge(site: Site) -> Counter[str]:
    effects = {n for (n,) in site.query("SELECT n FROM effects")}
    published: dict[int, list[tuple[Path, Published]]] = defaultdict(list)
    for journal, one in site.published():
        published[one.number].append((journal, one))
    claims: dict[str, list[Claim]] = defaultdict(list)
    for row in site.query("SELECT id, worker, claim_no, before, free_at, at FROM claims"):
        claims[row[0]].append(Claim(*row))

    assert effects <= set(published), "a committed message was never delivered"
    assert set(published) <= effects, "a message that was not committed was delivered"
    statuses = site.query(f"SELECT status, count(*) FROM {TABLE} GROUP BY status")
    assert statuses == [("delivered", len(effects))]

    for history in claims.values():
        for claim in history:
            assert claim.before == "pending" or claim.at > claim.free_at, "two holders, one lease"
    assert all(_is_claimed(one, claims) for many in published.values() for _, one in many)
    in_order(published)
    return Counter(
        reason
        for many in published.values()
        for reason in duplicates(many, claims, site.killed_journals)
    )


def _is_claimed(one: Published, claims: dict[str, list[Claim]]) -> bool:
    """Nobody publishes what it has not claimed."""
    return any((c.worker, c.claim_no) == (one.worker, one.claim_no) for c in claims[one.id])


def duplicates(
    many: list[tuple[Path, Published]], claims: dict[str, list[Claim]], killed: set[Path]
) -> Iterator[str]:
    """Why each delivery but the last was not enough. A reason that is none fails the test."""
    many.sort(key=lambda pair: pair[1].at)
    history = claims[many[0][1].id]
    followed_by = {(claim.worker, claim.claim_no): after for claim, after in pairwise(history)}
    for journal, one in many[:-1]:
        after = followed_by.get((one.worker, one.claim_no))
        if one.ambiguous:
            yield "ambiguous"
        elif journal in killed:
            yield "died"
        elif after is not None and after.before == "processing":
            yield "overran"
        else:
            raise AssertionError(f"{one} was delivered again without a reason")


def in_order(published: dict[int, list[tuple[Path, Published]]]) -> None:
    """First deliveries of a key come in the order in which its one producer committed them."""
    of_key: dict[str, list[Published]] = defaultdict(list)
    for many in published.values():
        first = min((one for _, one in many), key=lambda one: one.at)
        if first.key:
            of_key[first.key].append(first)
    for key, firsts in of_key.items():
        firsts.sort(key=lambda one: one.at)
        assert [one.number for one in firsts] == sorted(one.number for one in firsts), key


def crash(site: Site) -> None:
    try:
        work_and_kill(site)
    finally:
        for process in list(site.alive):
            process.kill()
            process.wait(DEADLINE)
    reasons = judge(site)
    messages = site.counted("SELECT count(*) FROM effects")
    print(f"{messages} messages, killed {dict(site.killed)}, delivered again {dict(reasons)}")
    assert min(site.killed[role] for role in ("produce", "dispatch")) >= KILLS
    assert reasons["ambiguous"] > 0
    assert reasons["died"] > 0


@pytest.fixture
def dice() -> random.Random:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    return random.Random(seed)


def test_kills_lose_nothing_on_sqlite(tmp_path: Path, dice: random.Random) -> None:
    path = tmp_path / "outbox.db"
    connection = sqlite3.connect(path, timeout=60, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    sqlite.migrate(connection)
    connection.executescript(_SCHEMA.format(time="integer"))
    connection.execute(_SQLITE_TRIGGER)

    def query(statement: str) -> list[Any]:
        return connection.execute(statement).fetchall()

    crash(Site(str(path), tmp_path, query, dice))
    connection.close()


@pytest.mark.check
def test_kills_lose_nothing_on_postgres(
    postgres_uri: str, tmp_path: Path, dice: random.Random
) -> None:
    address = make_conninfo(postgres_uri, options="-c search_path=crash")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA crash")
        connection.execute(
            "CREATE TABLE lucius_outbox_schema (version integer PRIMARY KEY, name text,"
            " applied_at timestamptz DEFAULT now())"
        )
        for migration in MIGRATIONS:
            connection.execute(migration.sql.encode())
            connection.execute(
                "INSERT INTO lucius_outbox_schema VALUES (%s, %s)",
                (migration.version, migration.name),
            )
        connection.execute(_SCHEMA.format(time="timestamptz").encode())
        connection.execute(_POSTGRES_TRIGGER.encode())

        def query(statement: str) -> list[Any]:
            return connection.execute(statement.encode()).fetchall()

        crash(Site(address, tmp_path, query, dice))
        connection.execute("DROP SCHEMA crash CASCADE")
