"""The port between the dispatcher and a database: domain verbs, no SQL.

Every adapter passes `tests/outbox/test_store.py`. What all verbs share:

- They work on one namespace, for one worker, whose id is new at every start, so that a restarted
  process never passes for the holder of what it held before.
- Each is atomic and durable when it returns. `StoreUnavailable` means that nothing was done, or
  that the answer was lost: the lease decides what happens next, so nothing is lost and at worst a
  message is published again.
- "Held" means that the row is `processing`, and its `locked_by` and `claim_no` are the claim's. A
  lease that has expired is still held until somebody else claims the row: finishing late is better
  than publishing twice.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol
from uuid import UUID

from lucius_outbox.errors import OnDeadFailed
from lucius_outbox.message import Claimed, Dead, Failure


class TopicStats(NamedTuple):
    """`oldest` is when the oldest row that is pending or processing was enqueued, `age` how long
    ago that is; `delivered` is None unless it was asked for."""

    namespace: str
    topic: str
    pending: int
    processing: int
    dead: int
    delivered: int | None
    oldest: datetime | None
    age: timedelta | None


class Span(NamedTuple):
    """Queues to list: the first `limit` after `after`, up to `upto` included, in the order of their
    UTF-8 bytes."""

    after: str
    upto: str
    limit: int


class Replayed(NamedTuple):
    """One line of the audit of replays."""

    message_id: str
    by: str
    reason: str
    at: datetime
    attempts: int
    last_error: str | None


class Buried(NamedTuple):
    """Rows that are dead now, and those that stayed as they were because `on_dead` raised."""

    dead: list[Dead]
    failed: list[OnDeadFailed]


class Store(Protocol):
    @property
    def namespace(self) -> str: ...

    @property
    def worker_id(self) -> str: ...

    async def check_schema(self) -> None:
        """SchemaMismatch unless the database has exactly the schema that this release knows."""

    async def claim_batch(self, size: int, lease: timedelta) -> list[Claimed]:
        """Take up to `size` rows for as long as `lease`, in the order in which they became due.

        Rows of expired leases come first. No row is given to two claims whose leases overlap. A row
        with an ordering key is given only when no earlier row of its key is pending or processing.
        Empty means that nothing can be claimed now.
        """

    async def ack(self, claims: Sequence[Claimed]) -> None:
        """The messages were published. LeaseLost names rows that are not held; the others are
        delivered all the same."""

    async def nack(self, failures: Sequence[Failure]) -> Buried:
        """The messages were not published: due again as the retry policy says, or dead, and then
        `on_dead` runs in the transaction that marks the row. LeaseLost as in ack."""

    async def release(self, claims: Sequence[Claimed]) -> None:
        """Nobody tried to publish: due at once, the attempt is given back. LeaseLost as in ack."""

    async def extend(self, claims: Sequence[Claimed], lease: timedelta) -> None:
        """Hold the rows for `lease` from now. LeaseLost as in ack."""

    async def sweep_dead(self, limit: int = 100) -> Buried:
        """Mark up to `limit` rows dead that have no attempts or no reclaims left."""

    async def replay(self, ids: Sequence[str], *, by: str, reason: str) -> int:
        """Dead rows become pending with fresh counters; who and why is recorded with them.

        Returns how many; ids of rows that are not dead are passed over. ReplayForbidden if the
        namespace does not allow it. A replayed row comes before later rows of its ordering key,
        not before those that went out while it was dead.
        """

    async def forbid_replay(self, forbidden: bool = True) -> None:
        """Settle for the whole namespace, in the database, whether dead rows may be replayed."""

    async def replays(self, limit: int = 100) -> list[Replayed]:
        """The audit of replays, newest first."""

    async def dead(self, limit: int = 100) -> list[Dead]:
        """Rows that are dead, the oldest first."""

    async def stats(self, *, delivered: bool = False) -> list[TopicStats]:
        """Counts by topic. Counting what is delivered reads all of it; the rest is quick."""

    async def prune(self, older_than: timedelta, limit: int = 1000) -> int:
        """Delete up to `limit` rows that were delivered longer ago; returns how many. Their dedupe
        keys are free again."""

    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` after commits that may have brought rows. Runs until it is cancelled; it may
        miss commits, so polling stays necessary."""


def checked_replay(ids: Sequence[str], by: str, reason: str) -> list[str]:
    """The ids in one spelling; an audit without a name or a reason would be none."""
    if not by.strip() or not reason.strip():
        raise ValueError("say who replays (by) and why (reason); both are kept with the message")
    return [str(UUID(message_id)) for message_id in ids]
