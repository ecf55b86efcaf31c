"""What can go wrong, grouped by what the caller should do.

OutboxError
├── InvalidMessage       mend the message; nothing was written
├── NoTransaction        begin a transaction, then enqueue in it
├── InvalidSettings      mend the settings; nothing was started
├── LeaseLost            another holder has the rows, or they ended: leave them alone
├── ReplayForbidden      this namespace does not replay; enqueue a new message instead
├── SchemaMismatch       migrate the database, or install the release that it belongs to
├── OnDeadFailed         mend `on_dead`; the row is not dead and comes again
└── StoreUnavailable     try again later

Undeliverable            raised by a publisher: never try this message again
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lucius_outbox.store import Buried


class OutboxError(Exception):
    """Base of all errors of this package."""


class InvalidMessage(OutboxError, ValueError):
    """A message that cannot be enqueued. `field` names what is wrong with it."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field} {problem}")
        self.field = field
        self.problem = problem


class NoTransaction(OutboxError):
    """`enqueue` outside a transaction: the message could commit without what it speaks of."""


class InvalidSettings(OutboxError, ValueError):
    """Settings that cannot work together."""


class LeaseLost(OutboxError):
    """Some rows are not held by this claim any more; the others were settled.

    `buried` is what `nack` would have returned.
    """

    def __init__(self, verb: str, ids: Sequence[str], buried: "Buried | None" = None) -> None:
        super().__init__(f"{verb}: no lease on {', '.join(ids)}")
        self.verb = verb
        self.ids = tuple(ids)
        self.buried = buried


class ReplayForbidden(OutboxError):
    """The namespace forbids replay."""

    def __init__(self, namespace: str) -> None:
        super().__init__(f"messages of {namespace!r} are never replayed; enqueue a new one instead")
        self.namespace = namespace


class SchemaMismatch(OutboxError):
    """The database's schema is not one that this release can work on."""

    def __init__(self, found: int, known: int, prefix: str = "lucius_outbox") -> None:
        advice = (
            "install the release that made it" if found > known else "call migrate() before use"
        )
        super().__init__(f"the schema {prefix} has version {found}, not {known}: {advice}")
        self.found = found
        self.known = known


class OnDeadFailed(OutboxError):
    """`on_dead` raised, so the row was not marked dead."""

    def __init__(self, message_id: str) -> None:
        super().__init__(f"on_dead failed for {message_id}; its row is not dead and comes again")
        self.message_id = message_id


class StoreUnavailable(OutboxError):
    """The database could not do it now. Nothing was changed, unless the answer was lost."""


class Undeliverable(Exception):
    """What a publisher raises when no later try can succeed: the message is dead at once."""
