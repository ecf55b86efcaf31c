"""What a service remembers of its steps, so that each attempt has one RESULT.

For every step there is one record, changed by compare-and-set alone. `Claims` takes and holds
claims on steps, `decisions` says who may, and a `DedupStore` keeps the records. `open_store` opens
one from its address.
"""

from lucius_sdk.idempotency_store.claims import Claimed, ClaimKind, Claims, HeldClaim
from lucius_sdk.idempotency_store.decisions import Expired, Finished, Held, Refused, Superseded
from lucius_sdk.idempotency_store.errors import (
    ClaimLost,
    Conflict,
    DeadlinePassed,
    RecordUnreadable,
    StoreError,
    StoreUnavailable,
    StoreUnusable,
)
from lucius_sdk.idempotency_store.memory import MemoryStore
from lucius_sdk.idempotency_store.opening import open_store
from lucius_sdk.idempotency_store.port import DedupStore, Stored
from lucius_sdk.idempotency_store.records import (
    RETENTION,
    ClaimState,
    Record,
    StepKey,
    StoredResult,
)

__all__ = [
    "RETENTION",
    "ClaimKind",
    "ClaimLost",
    "ClaimState",
    "Claimed",
    "Claims",
    "Conflict",
    "DeadlinePassed",
    "DedupStore",
    "Expired",
    "Finished",
    "Held",
    "HeldClaim",
    "MemoryStore",
    "Record",
    "RecordUnreadable",
    "Refused",
    "StepKey",
    "StoreError",
    "StoreUnavailable",
    "StoreUnusable",
    "Stored",
    "StoredResult",
    "Superseded",
    "open_store",
]
