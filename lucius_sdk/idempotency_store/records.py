"""What is remembered of one step: who runs which attempt, how far it is, and its result."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import pydantic_core

from lucius_contract.timeouts import ATTEMPT_CEILING, JOB_SLA
from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.idempotency_store.errors import RecordUnreadable

RETENTION = JOB_SLA + ATTEMPT_CEILING + timedelta(days=1)
"""How long a record is kept after its last change: no directive of its job can come later. That is
the job's time limit, the longest life of a directive (the ceiling of an attempt) and a day."""

T = TypeVar("T")


class StepKey(NamedTuple):
    job_id: str
    step_id: str


class ClaimState(StrEnum):
    CLAIMED = "CLAIMED"
    ACKED = "ACKED"
    COMPLETED = "COMPLETED"
    REPORTED = "REPORTED"


@dataclass(frozen=True, slots=True)
class StoredResult:
    """The RESULT as it is sent, every time with the same bytes, and where to."""

    body: bytes = field(repr=False)  # the lease is in it
    address: ReplyAddress


class Record(NamedTuple):
    """The unit of compare-and-set: one for each step.

    `owner` is None once the claim was released. `epoch` is 1 for the first run of an attempt and
    grows when the claim changes hands; `takeovers` counts the changes that followed a silence and
    not a release. `until` is how long the owner is trusted to live, `deadline` how long the attempt
    may work. `claim_no` is the owner's number of its claim, by which it knows a write of its own.
    """

    attempt_no: int
    lease_id: str
    state: ClaimState
    owner: str | None
    epoch: int
    takeovers: int
    until: datetime
    deadline: datetime
    result: StoredResult | None = None
    claim_no: int = 0

    def __repr__(self) -> str:
        """Without the lease: who has it can answer."""
        return f"<Record of attempt {self.attempt_no}, epoch {self.epoch}: {self.state.value}>"


def encode(record: Record) -> str:
    """As JSON."""
    document = {
        "attempt_no": record.attempt_no,
        "lease_id": record.lease_id,
        "state": record.state.value,
        "owner": record.owner,
        "epoch": record.epoch,
        "takeovers": record.takeovers,
        "until": record.until.isoformat(),
        "deadline": record.deadline.isoformat(),
        "result": None if record.result is None else _result_document(record.result),
        "claim_no": record.claim_no,
    }
    try:
        return pydantic_core.to_json(document).decode()
    except ValueError:  # a body that is no UTF-8
        return json.dumps(document)


def decode(document: str | bytes) -> Record:
    """Members that are not known are passed over; anything else amiss is `RecordUnreadable`."""
    try:
        return _record(json.loads(document))
    except (ValueError, TypeError, KeyError) as error:
        # The document holds a token: neither it nor the parser's words about it are repeated.
        kind = type(error).__name__
        raise RecordUnreadable(f"the stored record cannot be read ({kind})") from None


def _result_document(result: StoredResult) -> dict[str, Any]:
    address = result.address
    return {
        # Bytes that are no UTF-8 come back as they were, too.
        "body": result.body.decode("utf-8", "surrogateescape"),
        "lane": address.lane,
        "partition_key": address.partition_key,
        "ack_url": address.ack_url,
        "result_url": address.result_url,
        "heartbeat_url": address.heartbeat_url,
        "token": address.token,
    }


def _record(document: Mapping[str, Any]) -> Record:
    state = ClaimState(document["state"])
    result = None if document["result"] is None else _result(document["result"])
    if (result is not None) != (state in (ClaimState.COMPLETED, ClaimState.REPORTED)):
        raise ValueError("the result does not fit the state")
    return Record(
        attempt_no=_typed(document, "attempt_no", int),
        lease_id=_typed(document, "lease_id", str),
        state=state,
        owner=_optional(document, "owner"),
        epoch=_typed(document, "epoch", int),
        takeovers=_typed(document, "takeovers", int),
        until=_instant(document, "until"),
        deadline=_instant(document, "deadline"),
        result=result,
        claim_no=_typed(document, "claim_no", int),
    )


def _result(document: Mapping[str, Any]) -> StoredResult:
    address = ReplyAddress(
        lane=_typed(document, "lane", int),
        partition_key=_typed(document, "partition_key", str),
        ack_url=_optional(document, "ack_url"),
        result_url=_optional(document, "result_url"),
        heartbeat_url=_optional(document, "heartbeat_url"),
        token=_optional(document, "token"),
    )
    return StoredResult(_typed(document, "body", str).encode("utf-8", "surrogateescape"), address)


def _typed(document: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = document[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} is of another type")
    return value


def _optional(document: Mapping[str, Any], name: str) -> str | None:
    return None if document[name] is None else _typed(document, name, str)


def _instant(document: Mapping[str, Any], name: str) -> datetime:
    instant = datetime.fromisoformat(_typed(document, name, str))
    if instant.tzinfo is None:
        raise ValueError(f"{name} has no offset")
    return instant
