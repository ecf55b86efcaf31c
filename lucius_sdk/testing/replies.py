"""An orchestrator that writes down what it is told, and answers as it was asked to."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from lucius_contract.messages import Ack, Heartbeat, Reply, Result, parse_reply
from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.replies.answers import Answer, Verdict
from lucius_sdk.replies.outgoing import Outgoing

R = TypeVar("R", Ack, Heartbeat, Result)

APPLIED = Answer(Verdict.APPLIED)
Answering = Callable[[Reply], Answer]
"""Answers a reply; it may raise `ReplyUnavailable`, as if nobody were there."""


class RecordedReplies:
    """`replies` are all that were answered, in their order; `has_result` is set by a RESULT."""

    def __init__(self, answering: Answering = lambda _: APPLIED) -> None:
        self.answering = answering
        self.replies: list[Reply] = []
        self.bodies: list[bytes] = []
        self.addresses: list[ReplyAddress] = []
        self.has_result = asyncio.Event()

    @property
    def acks(self) -> list[Ack]:
        return self._of(Ack)

    @property
    def heartbeats(self) -> list[Heartbeat]:
        return self._of(Heartbeat)

    @property
    def results(self) -> list[Result]:
        return self._of(Result)

    async def send(self, address: ReplyAddress, reply: Outgoing) -> Answer:
        read = parse_reply(reply.body)
        answer = self.answering(read)
        self.replies.append(read)
        self.bodies.append(reply.body)
        self.addresses.append(address)
        if isinstance(read, Result):
            self.has_result.set()
        return answer

    async def check(self) -> None: ...

    async def close(self) -> None: ...

    def _of(self, kind: type[R]) -> list[R]:
        return [reply for reply in self.replies if isinstance(reply, kind)]
