"""What workflows, their activities and those who start or signal them tell each other.

It is stored in Temporal for as long as a job runs, so an older release may have written it, or a
newer one: members that are not known here are ignored, and new ones need a default. Imports little,
since workflow code does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import MAXYEAR, UTC, datetime
from typing import Any

WORKFLOW = "lucius-job"
TENANT, REQUEST_TYPE, STATE = "LuciusTenant", "LuciusRequestType", "LuciusState"
"""Search attributes, all of the type Keyword."""

Raw = dict[str, Any]
_MANY_SECONDS = 10**9
LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Malformed(ValueError):
    """What came is not what comes next for a job."""


@dataclass(frozen=True, slots=True)
class Timer:
    event: str
    deadline: datetime


@dataclass(frozen=True, slots=True)
class NextMove:
    """What comes next for a job, as a workflow reads it; `raw` is how it came."""

    action: str
    state: str
    seq: int
    step_id: str
    attempt_no: int
    lease_id: str
    lease_expires_at: datetime
    lease_seconds: float
    at: datetime
    timers: tuple[Timer, ...]
    raw: Raw = field(repr=False)

    @property
    def order(self) -> tuple[int, datetime]:
        """Heartbeats move the lease alone; everything else moves `seq`."""
        return self.seq, self.lease_expires_at

    @classmethod
    def of(cls, raw: object) -> "NextMove":
        """Malformed, if it is not one."""
        if not isinstance(raw, Mapping):
            raise Malformed(f"{type(raw).__name__} is no object")
        try:
            return cls._of(dict(raw))
        except (KeyError, TypeError, ValueError, ArithmeticError) as error:
            raise Malformed(f"{type(error).__name__}: {error}") from error

    @classmethod
    def _of(cls, raw: Raw) -> "NextMove":
        return cls(
            action=_text(raw["action"]),
            state=_text(raw["state"]),
            seq=int(raw["seq"]),
            step_id=_text(raw["stepId"]),
            attempt_no=int(raw["attempt_no"]),
            lease_id=_text(raw.get("lease_id") or ""),
            lease_expires_at=_moment(raw.get("lease_expires_at")),
            lease_seconds=_seconds(raw["lease_seconds"]),
            at=_moment(raw.get("at")),
            timers=tuple(Timer(_text(t["event"]), parsed(t["deadline"])) for t in raw["timers"]),
            raw=raw,
        )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _seconds(value: float) -> float:
    """That can be added to a time."""
    if not 0 < float(value) < _MANY_SECONDS:
        raise ValueError(f"{value!r} is no time to wait")
    return float(value)


def _moment(text: str | None) -> datetime:
    return LONG_AGO if text is None else parsed(text)


def parsed(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or moment.year == MAXYEAR:
        raise ValueError(f"{text!r} has no time zone, or is too far away")
    return moment


def written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True)
class JobInput:
    """What a workflow is started with, and continues with. `lease_key` is random: lease ids are
    made of it, so that an attempt that is asked for again has the same one, and nobody else can
    know it. `is_searchable`: the namespace has the search attributes."""

    job_id: str
    tenant_id: str
    request_type: str
    next: Raw
    lease_key: str = field(repr=False)
    skew_seconds: float = 2.0
    is_searchable: bool = False
    history_limit: int = 2_000


@dataclass(frozen=True)
class Outcome:
    """How a workflow ended: the job's last state, or NOT_FOUND if the job is no more."""

    state: str


NOT_FOUND = "JOB_NOT_FOUND"


@dataclass(frozen=True)
class AttemptCall:
    job_id: str
    tenant_id: str
    step_id: str
    attempt_no: int
    lease_id: str = field(repr=False)
    lease_expires_at: str = ""
    """For the one that opens it."""


@dataclass(frozen=True)
class DeadlineCall:
    attempt: AttemptCall
    event: str
    deadline: str


@dataclass(frozen=True)
class CommandCall:
    job_id: str
    verb: str


@dataclass(frozen=True)
class Answer:
    """`next` is absent if nothing was said about it; `is_gone`: there is no such job any more."""

    next: Raw | None = None
    not_before: str | None = None
    is_gone: bool = False
