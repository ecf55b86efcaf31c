"""Replies of services over HTTP. Plain ASGI: every attempt has at least two.

The token is checked against what the body says of itself before the engine sees it.
"""

from http import HTTPStatus

from starlette.types import Receive, Scope, Send

from lucius_contract.audit import VERDICT_HTTP_STATUS
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.messages import MessageType, Reply, parse_reply
from lucius_orchestrator.api.answers import send_json
from lucius_orchestrator.api.bodies import read_body
from lucius_orchestrator.api.headers import authorization
from lucius_orchestrator.api.parameters import read_query
from lucius_orchestrator.api.parts import CallbackParts
from lucius_orchestrator.domain.decision import ReplyAnswer


class Callback:
    """The address for one type of reply."""

    def __init__(self, parts: CallbackParts, type: MessageType) -> None:
        self._tokens = parts.tokens
        self._engine = parts.engine
        self._type = type

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = self._read(await read_body(receive))
        self._tokens.check(
            bearer(scope), reply.job_id, reply.step_id, reply.attempt_no, reply.lease_id
        )
        read_query(scope)
        answer = await self._engine.reply(reply)
        if VERDICT_HTTP_STATUS[answer.verdict] != HTTPStatus.OK:
            raise _refused(answer)
        await send_json(send, HTTPStatus.OK, answer._asdict())

    def _read(self, raw: bytes) -> Reply:
        reply = parse_reply(raw)
        if reply.type != self._type:
            problem = Problem("/type", f"must be {self._type} at this address")
            raise ContractError(ErrorCode.ENVELOPE_INVALID, "not for this address", [problem])
        return reply


def bearer(scope: Scope) -> str | None:
    scheme, _, token = (authorization(scope) or "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _refused(answer: ReplyAnswer) -> ContractError:
    """Verdicts that refuse a reply are error codes of the same name."""
    code = ErrorCode(answer.verdict)
    if code is ErrorCode.STALE_ATTEMPT:
        return ContractError(code, "the attempt or its lease is no longer current: stop working")
    return ContractError(code, "another RESULT was applied for this attempt")
