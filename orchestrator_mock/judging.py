"""Replies judged as the orchestrator judges them: read, then the token, then the ledger."""

from collections.abc import Mapping
from http import HTTPStatus

from lucius_contract.audit import VERDICT_HTTP_STATUS, Verdict
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.messages import Reply, parse_reply
from lucius_orchestrator.domain.decision import ReplyAnswer
from lucius_orchestrator.domain.directive import on_the_wire
from orchestrator_mock.answers import Answer, refused
from orchestrator_mock.ledger import MockLedger
from orchestrator_mock.recording import What

Identity = tuple[str, str, int, str]
_WHY = {
    Verdict.STALE_ATTEMPT: "the attempt or its lease is no longer current: stop working",
    Verdict.RESULT_CONFLICT: "another RESULT was applied for this attempt",
}


class HttpJudge:
    """Tokens are given out with directives, one for each attempt."""

    def __init__(self, ledger: MockLedger) -> None:
        self._ledger = ledger
        self._tokens: dict[str, Identity] = {}

    def allow(self, token: str, identity: Identity) -> None:
        self._tokens[token] = identity

    async def __call__(
        self, type: What, token: str | None, _headers: Mapping[str, str], raw: bytes
    ) -> Answer:
        try:
            reply = _read(raw, type)
            self._check(token, reply)
            return answered(self._ledger.judge(reply))
        except ContractError as error:
            return refused(error)

    def _check(self, token: str | None, reply: Reply) -> None:
        allowed = self._tokens.get(token or "")
        if allowed is None:
            raise ContractError(ErrorCode.UNAUTHENTICATED, "the callback token is not valid")
        if allowed != (reply.job_id, reply.step_id, reply.attempt_no, reply.lease_id):
            raise ContractError(
                ErrorCode.FORBIDDEN, "the callback token is for another job, step or attempt"
            )


def answered(answer: ReplyAnswer) -> Answer:
    status = VERDICT_HTTP_STATUS[answer.verdict]
    if status != HTTPStatus.OK:
        return refused(ContractError(ErrorCode(answer.verdict), _WHY[answer.verdict]))
    ends = answer.lease_expires_at
    return Answer(
        status,
        {
            "verdict": answer.verdict,
            "lease_expires_at": None if ends is None else on_the_wire(ends),
            "cancel_requested": answer.cancel_requested,
        },
    )


def _read(raw: bytes, type: What) -> Reply:
    reply = parse_reply(raw)
    if reply.type.value != type.value:
        problem = Problem("/type", f"must be {type} at this address")
        raise ContractError(ErrorCode.ENVELOPE_INVALID, "not for this address", [problem])
    return reply
