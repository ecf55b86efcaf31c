"""A general-purpose transactional outbox: commit your rows and the message about them together.

`lucius_outbox.postgres` and `lucius_outbox.sqlite` have `enqueue`, `migrate` and a store each; the
`Dispatcher` publishes what was committed, at least once. This package imports neither, so that
nobody needs a driver that is not used.
"""

from lucius_outbox.dispatcher import Dispatcher, DispatchSettings
from lucius_outbox.errors import (
    InvalidMessage,
    InvalidSettings,
    LeaseLost,
    NoTransaction,
    OnDeadFailed,
    OutboxError,
    ReplayForbidden,
    SchemaMismatch,
    StoreUnavailable,
    Undeliverable,
)
from lucius_outbox.message import Claimed, Dead, Failure, Message, Outcome, Receipt
from lucius_outbox.publishing import Publish, one_by_one
from lucius_outbox.retry import Delays, EqualJitter, RetryPolicy
from lucius_outbox.states import Status
from lucius_outbox.store import Buried, Replayed, Store, TopicStats

__all__ = [
    "Buried",
    "Claimed",
    "Dead",
    "Delays",
    "DispatchSettings",
    "Dispatcher",
    "EqualJitter",
    "Failure",
    "InvalidMessage",
    "InvalidSettings",
    "LeaseLost",
    "Message",
    "NoTransaction",
    "OnDeadFailed",
    "OutboxError",
    "Outcome",
    "Publish",
    "Receipt",
    "ReplayForbidden",
    "Replayed",
    "RetryPolicy",
    "SchemaMismatch",
    "Status",
    "Store",
    "StoreUnavailable",
    "TopicStats",
    "Undeliverable",
    "one_by_one",
]
