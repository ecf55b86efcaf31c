"""A step, its attempts, and what is wanted and stored of them."""

from datetime import UTC, datetime, timedelta

from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.idempotency_store import ClaimState, Record, StepKey, StoredResult
from lucius_sdk.idempotency_store.decisions import Wanted

KEY = StepKey("job_1", "step_01")
START = datetime(2026, 1, 1, tzinfo=UTC)
SKEW = timedelta(seconds=2)
LOCK = timedelta(seconds=60)
LEASE = timedelta(minutes=15)
LEASE_ID = "lease-of-attempt-{}"
TOKEN = "token-of-the-callback"  # noqa: S105
ADDRESS = ReplyAddress(
    3, "acme", "https://o.test/ack", "https://o.test/result", "https://o.test/heartbeat", TOKEN
)
BODY = b'{"type":"RESULT","lease_id":"lease-of-attempt-1","note":"\xc3\xa4"}'
RESULT = StoredResult(BODY, ADDRESS)


def key(number: int) -> StepKey:
    return StepKey(f"job_{number}", "step_01")


def result(text: str) -> StoredResult:
    return StoredResult(text.encode(), ADDRESS)


def wanted(
    attempt_no: int = 1,
    owner: str = "a",
    *,
    now: datetime = START,
    deadline: datetime = START + LEASE,
    lease_id: str | None = None,
    claim_no: int = 0,
) -> Wanted:
    lease = LEASE_ID.format(attempt_no) if lease_id is None else lease_id
    return Wanted(attempt_no, lease, owner, now + LOCK, deadline, claim_no)


def record(
    state: ClaimState = ClaimState.CLAIMED,
    *,
    attempt_no: int = 1,
    owner: str | None = "a",
    epoch: int = 1,
    takeovers: int = 0,
    until: datetime = START + LOCK,
    deadline: datetime = START + LEASE,
    claim_no: int = 0,
) -> Record:
    has_result = state in (ClaimState.COMPLETED, ClaimState.REPORTED)
    return Record(
        attempt_no=attempt_no,
        lease_id=LEASE_ID.format(attempt_no),
        state=state,
        owner=owner,
        epoch=epoch,
        takeovers=takeovers,
        until=until,
        deadline=deadline,
        result=RESULT if has_result else None,
        claim_no=claim_no,
    )
