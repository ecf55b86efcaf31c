"""What an HTTP response says about a reply.

2xx                      final: APPLIED, or what the body says
409                      final: STALE or CONFLICT, as the body's code says, else REFUSED
400, 404, 413, 422       final: REFUSED
401, 403                 ReplyUnauthorised
anything else            ReplyUnavailable: 408, 429 and 5xx; and what only a stranger on the way
                         would answer, who cannot decide about a RESULT
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import pydantic_core

from lucius_contract.audit import Verdict as OrchestratorVerdict
from lucius_sdk.replies.answers import Answer, ReplyUnauthorised, ReplyUnavailable, Verdict

_DETAIL_LIMIT = 500
_PROBLEMS_SHOWN = 3
_REFUSED = frozenset({400, 404, 413, 422})
_UNAUTHORISED = frozenset({401, 403})
_CONFLICT = 409
_VERDICTS: dict[str, Verdict] = {
    OrchestratorVerdict.APPLIED.value: Verdict.APPLIED,
    OrchestratorVerdict.DUPLICATE.value: Verdict.DUPLICATE,
    OrchestratorVerdict.STALE_ATTEMPT.value: Verdict.STALE,
    OrchestratorVerdict.RESULT_CONFLICT.value: Verdict.CONFLICT,
}


class Response(NamedTuple):
    """`origin` names who answered; `body` is empty if it was too long to be an answer."""

    origin: str
    status: int
    body: bytes
    retry_after: str | None = None


def answer_of(response: Response, now: datetime) -> Answer:
    """`ReplyUnavailable`, `ReplyUnauthorised`."""
    status = response.status
    if 200 <= status < 300:
        return _accepted(_members(response.body))
    if status in _REFUSED or status == _CONFLICT:
        return _refused(response)
    said = f"{response.origin} answered {status}"
    if status in _UNAUTHORISED:
        raise ReplyUnauthorised(said)
    raise ReplyUnavailable(said, seconds_of(response.retry_after, now))


def seconds_of(retry_after: str | None, now: datetime) -> float | None:
    """The header is a number of seconds, or a date; one that is neither was not given."""
    if retry_after is None:
        return None
    text = retry_after.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
        return max((moment.astimezone(UTC) - now).total_seconds(), 0.0)
    except (ValueError, OverflowError):
        return None


def _accepted(members: Mapping[str, Any]) -> Answer:
    return Answer(
        _VERDICTS.get(str(members.get("verdict")), Verdict.APPLIED),
        _instant(members.get("lease_expires_at")),
        members.get("cancel_requested") is True,
    )


def _refused(response: Response) -> Answer:
    members = _members(response.body)
    code = members.get("code") if response.status == _CONFLICT else None
    verdict = _VERDICTS.get(str(code), Verdict.REFUSED)
    return Answer(verdict, detail=_detail(response, members))


def _detail(response: Response, members: Mapping[str, Any]) -> str:
    parts = [f"{response.origin} answered {response.status}"]
    parts += [str(members[name]) for name in ("code", "detail") if members.get(name)]
    problems = members.get("errors")
    for problem in problems[:_PROBLEMS_SHOWN] if isinstance(problems, list) else ():
        if isinstance(problem, dict):
            parts.append(f"{problem.get('pointer')} {problem.get('message')}")
    return ": ".join(parts)[:_DETAIL_LIMIT]


def _members(body: bytes) -> Mapping[str, Any]:
    """The status is the answer: a body that cannot be read adds nothing to it."""
    try:
        value = pydantic_core.from_json(body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _instant(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.astimezone(UTC) if moment.tzinfo else None
    except (ValueError, OverflowError):
        return None
