"""What the service remembers of each step, in a file that outlives it."""

import sqlite3
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from tests.conform.broken_services.directives import Directive

_SCHEMA = """
CREATE TABLE IF NOT EXISTS step (
    job_id TEXT, step_id TEXT, attempt_no INTEGER, lease_id TEXT, state TEXT, owner TEXT,
    epoch INTEGER, until REAL, deadline REAL, result BLOB, PRIMARY KEY (job_id, step_id)
)
"""


class State(StrEnum):
    CLAIMED = "CLAIMED"
    COMPLETED = "COMPLETED"
    REPORTED = "REPORTED"


class Verdict(StrEnum):
    """What a directive finds when it wants to be the one that is worked on."""

    NEW = "new"
    TAKEN_OVER = "taken over"
    BUSY = "busy"
    SUPERSEDED = "superseded"
    DONE = "done"


class Row(NamedTuple):
    """`until` is how long its owner may be silent, `deadline` when its lease ends."""

    job_id: str
    step_id: str
    attempt_no: int
    lease_id: str
    state: State
    owner: str
    epoch: int
    until: float
    deadline: float
    result: bytes | None


@dataclass(frozen=True, slots=True)
class Claim:
    """`row` is what is stored after it was made, or what stands in its way."""

    verdict: Verdict
    row: Row

    @property
    def is_mine(self) -> bool:
        return self.verdict in (Verdict.NEW, Verdict.TAKEN_OVER)


class Store:
    """Each step has one row. A change names the attempt, the lease and the epoch that it is based
    on, and is not made if any of them has moved."""

    def __init__(self, path: str, owner: str) -> None:
        self.owner = owner
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute(_SCHEMA)

    def close(self) -> None:
        self._db.close()

    def find(self, directive: Directive) -> Row | None:
        found = self._db.execute(
            "SELECT * FROM step WHERE job_id = ? AND step_id = ?",
            (directive.job_id, directive.step_id),
        ).fetchone()
        return None if found is None else Row(*found)._replace(state=State(found[4]))

    def claim(self, directive: Directive, now: float, until: float) -> Claim:
        """One transaction: of several that ask at once, one gets it."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            found = self.find(directive)
            verdict = self.verdict(found, directive, now)
            claim = self._claimed(verdict, found, directive, until)
            self._db.execute("COMMIT")
        except BaseException:
            self._db.execute("ROLLBACK")
            raise
        return claim

    def verdict(self, found: Row | None, directive: Directive, now: float) -> Verdict:
        if found is None or found.attempt_no < directive.attempt_no:
            return Verdict.NEW
        if (found.attempt_no, found.lease_id) != (directive.attempt_no, directive.lease_id):
            return Verdict.SUPERSEDED
        if found.state is State.REPORTED:
            return Verdict.DONE
        return Verdict.BUSY if found.until > now else Verdict.TAKEN_OVER

    def put(self, row: Row) -> None:
        """Whatever was there."""
        marks = ", ".join("?" * len(row))
        self._db.execute(f"INSERT OR REPLACE INTO step VALUES ({marks})", row)

    def new_row(self, directive: Directive, until: float) -> Row:
        return Row(
            directive.job_id,
            directive.step_id,
            directive.attempt_no,
            directive.lease_id,
            State.CLAIMED,
            self.owner,
            1,
            until,
            directive.lease_expires_at,
            None,
        )

    def extend(self, row: Row, until: float, deadline: float) -> bool:
        return self._change(row, "until = ?, deadline = ?", until, deadline)

    def complete(self, row: Row, result: bytes) -> bool:
        return self._change(row, "state = ?, result = ?", State.COMPLETED, result)

    def report(self, row: Row) -> bool:
        return self._change(row, "state = ?", State.REPORTED)

    def release(self, row: Row) -> bool:
        """Who asks next gets it."""
        return self._change(row, "until = ?", 0.0)

    def forget_finished(self) -> None:
        self._db.execute("DELETE FROM step WHERE state = ?", (State.REPORTED,))

    def _claimed(
        self, verdict: Verdict, found: Row | None, directive: Directive, until: float
    ) -> Claim:
        row = found
        if row is None or verdict is Verdict.NEW:
            row = self.new_row(directive, until)
        elif verdict is Verdict.TAKEN_OVER:
            row = row._replace(owner=self.owner, epoch=row.epoch + 1, until=until)
        claim = Claim(verdict, row)
        if claim.is_mine:
            self.put(row)
        return claim

    def _change(self, row: Row, what: str, *values: object) -> bool:
        changed = self._db.execute(
            f"UPDATE step SET {what} WHERE job_id = ? AND step_id = ?"
            " AND attempt_no = ? AND lease_id = ? AND epoch = ?",
            (*values, row.job_id, row.step_id, row.attempt_no, row.lease_id, row.epoch),
        )
        return changed.rowcount == 1
