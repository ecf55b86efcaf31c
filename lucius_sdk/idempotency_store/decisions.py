"""Who may run a step, decided from what is stored: pure.

A directive that is delivered wants a claim. A higher attempt replaces whatever is stored, a lower
one is superseded. Of the same attempt, a stored result comes first: it is sent, also after the
deadline. A claim that is alive is left alone. One that has lapsed or was released is taken over if
there is time left.

Clocks differ, so a claim has lapsed, and a deadline is over, only when that was more than `skew`
ago.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NoReturn

from lucius_sdk.idempotency_store.records import ClaimState, Record, StoredResult

CRASH_LOOP_AT = 3
"""Take-overs of one attempt after which it is answered instead of run."""

_UNFINISHED = (ClaimState.CLAIMED, ClaimState.ACKED)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The claim that a delivered directive wants."""

    attempt_no: int
    lease_id: str = field(repr=False)
    owner: str
    until: datetime
    deadline: datetime
    claim_no: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """Write the record, then run the work."""

    record: Record


@dataclass(frozen=True, slots=True)
class Resend:
    """Write the record, then send its result."""

    record: Record


@dataclass(frozen=True, slots=True)
class CrashLoop:
    """Write the record, then answer that the attempt has ended its runners too often."""

    record: Record


@dataclass(frozen=True, slots=True)
class Finished:
    """The result of this attempt was reported."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another attempt, or another lease of this one, has the step."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The deadline is over and there is no result."""


@dataclass(frozen=True, slots=True)
class Held:
    """A live claim stands. It may be of the very owner that asks, who knows what it runs."""

    until: datetime


Granted = Run | Resend | CrashLoop
Refused = Finished | Superseded | Expired | Held
Decision = Granted | Refused


def decide_claim(record: Record | None, wanted: Wanted, now: datetime, skew: timedelta) -> Decision:
    if record is None or record.attempt_no < wanted.attempt_no:
        return Expired() if is_over(wanted.deadline, now, skew) else Run(_first(wanted))
    if (record.attempt_no, record.lease_id) != (wanted.attempt_no, wanted.lease_id):
        return Superseded()
    if record.state is ClaimState.REPORTED:
        return Finished()
    if record.state is ClaimState.COMPLETED:
        return _decide_completed(record, wanted, now, skew)
    return _decide_unfinished(record, wanted, now, skew)


def is_over(moment: datetime, now: datetime, skew: timedelta) -> bool:
    """Past on every clock."""
    return moment + skew < now


def is_free(record: Record, now: datetime, skew: timedelta) -> bool:
    """Released, or its owner has been silent for too long."""
    return record.owner is None or is_over(record.until, now, skew)


def acked(record: Record, deadline: datetime | None = None) -> Record:
    if record.owner is None or record.state not in _UNFINISHED:
        _refuse(record, "acknowledged")
    later = _later(record.deadline, deadline)
    return record._replace(state=ClaimState.ACKED, deadline=later)


def renewed(record: Record, until: datetime, deadline: datetime | None = None) -> Record:
    """Neither moment ever moves back."""
    if record.owner is None or record.state is ClaimState.REPORTED:
        _refuse(record, "renewed")
    later = _later(record.deadline, deadline)
    return record._replace(until=max(record.until, until), deadline=later)


def completed(record: Record, result: StoredResult) -> Record:
    if record.owner is None or record.state not in _UNFINISHED:
        _refuse(record, "completed")
    return record._replace(state=ClaimState.COMPLETED, result=result)


def reported(record: Record) -> Record:
    if record.owner is None or record.state is not ClaimState.COMPLETED:
        _refuse(record, "reported")
    return record._replace(state=ClaimState.REPORTED)


def released(record: Record, now: datetime) -> Record:
    """Anybody may take it over at once. Its result, if there is one, is found as lapsed."""
    if record.owner is None or record.state is ClaimState.REPORTED:
        _refuse(record, "released")
    return record._replace(owner=None, until=now)


def _first(wanted: Wanted) -> Record:
    return Record(
        attempt_no=wanted.attempt_no,
        lease_id=wanted.lease_id,
        state=ClaimState.CLAIMED,
        owner=wanted.owner,
        epoch=1,
        takeovers=0,
        until=wanted.until,
        deadline=wanted.deadline,
        claim_no=wanted.claim_no,
    )


def _decide_completed(record: Record, wanted: Wanted, now: datetime, skew: timedelta) -> Decision:
    if record.owner == wanted.owner:
        return Resend(renewed(record, wanted.until, wanted.deadline))
    if is_free(record, now, skew):
        return Resend(_taken_over(record, wanted))
    return Held(record.until)


def _decide_unfinished(record: Record, wanted: Wanted, now: datetime, skew: timedelta) -> Decision:
    """A live claim is no matter of deadlines: its owner may know of a later one than is stored."""
    if not is_free(record, now, skew):
        return Held(record.until)
    if is_over(max(record.deadline, wanted.deadline), now, skew):
        return Expired()
    taken = _taken_over(record, wanted)._replace(state=ClaimState.CLAIMED)
    if record.owner is not None:
        taken = taken._replace(takeovers=record.takeovers + 1)
    return CrashLoop(taken) if taken.takeovers >= CRASH_LOOP_AT else Run(taken)


def _taken_over(record: Record, wanted: Wanted) -> Record:
    return record._replace(
        owner=wanted.owner,
        epoch=record.epoch + 1,
        until=wanted.until,
        deadline=max(record.deadline, wanted.deadline),
        claim_no=wanted.claim_no,
    )


def _later(stored: datetime, deadline: datetime | None) -> datetime:
    return stored if deadline is None else max(stored, deadline)


def _refuse(record: Record, verb: str) -> NoReturn:
    state = "released" if record.owner is None else record.state.value
    raise ValueError(f"a claim that is {state} cannot be {verb}")
