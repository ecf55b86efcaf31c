"""Defaults of everything that waits. All can be set, most per protocol step as well."""

from dataclasses import dataclass
from datetime import timedelta

Delays = tuple[timedelta, ...]

ACK_TIMEOUT = timedelta(seconds=30)
LEASE = timedelta(minutes=15)
HEARTBEATS_PER_LEASE = 3
ATTEMPT_CEILING = timedelta(hours=2)
MAX_ATTEMPTS = 3
DISPATCH_BACKOFF: Delays = (timedelta(seconds=30), timedelta(minutes=2), timedelta(minutes=10))
RETRY_BACKOFF: Delays = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15))
JITTER = 0.1
STALE_DISPATCH = timedelta(seconds=60)
JOB_SLA = timedelta(hours=24)
RECOVERY_GRACE = timedelta(seconds=60)
MAX_CLOCK_SKEW = timedelta(seconds=2)


@dataclass(frozen=True, slots=True)
class TimeoutInfo:
    name: str
    default: str
    step_field: str | None
    meaning: str


def _list(delays: Delays) -> str:
    return ", ".join(_text(delay) for delay in delays)


def _text(delay: timedelta) -> str:
    seconds = int(delay.total_seconds())
    if seconds % 3600 == 0:
        return f"{seconds // 3600} h"
    return f"{seconds} s" if seconds % 60 else f"{seconds // 60} min"


TIMEOUTS: tuple[TimeoutInfo, ...] = (
    TimeoutInfo(
        "ACK timeout",
        _text(ACK_TIMEOUT),
        "ack_timeout",
        "From the publish of a directive to its ACK.",
    ),
    TimeoutInfo(
        "lease",
        _text(LEASE),
        "lease",
        "From the first accepted ACK or the last HEARTBEAT to the RESULT.",
    ),
    TimeoutInfo(
        "heartbeat",
        f"lease / {HEARTBEATS_PER_LEASE}",
        "heartbeat",
        "How often a service should send a HEARTBEAT.",
    ),
    TimeoutInfo(
        "attempt ceiling",
        _text(ATTEMPT_CEILING),
        "timeout",
        "From the first accepted ACK to the RESULT; no HEARTBEAT extends it.",
    ),
    TimeoutInfo(
        "max attempts",
        str(MAX_ATTEMPTS),
        "max_attempts",
        "Attempts per step, whether they ended by timeout or by a failure.",
    ),
    TimeoutInfo(
        "dispatch backoff",
        _list(DISPATCH_BACKOFF),
        None,
        "Between tries to publish one directive.",
    ),
    TimeoutInfo(
        "retry backoff",
        _list(RETRY_BACKOFF),
        "backoff",
        "From the end of a failed attempt to the next one; the last value repeats.",
    ),
    TimeoutInfo(
        "jitter", f"±{JITTER:.0%}", None, "Spread of every retry backoff, against thundering herds."
    ),
    TimeoutInfo(
        "stale dispatch",
        _text(STALE_DISPATCH),
        None,
        "From the enqueue of a directive until a sweeper looks after it.",
    ),
    TimeoutInfo("job SLA", _text(JOB_SLA), None, "From submission to a terminal state."),
    TimeoutInfo(
        "recovery grace",
        _text(RECOVERY_GRACE),
        None,
        "After a start, before ACK timeouts and expired leases are acted on.",
    ),
    TimeoutInfo(
        "clock skew",
        _text(MAX_CLOCK_SKEW),
        None,
        "Timers fire this much after their deadline; the most that two clocks may differ.",
    ),
)


def delay_after(failures: int, delays: Delays, jitter: float) -> timedelta:
    """The wait after failure number `failures`; `jitter` in [-1, 1] places it within ±10 %."""
    return delays[min(failures, len(delays)) - 1] * (1 + JITTER * jitter)
