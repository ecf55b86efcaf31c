"""Where replies go: the directive says it."""

from dataclasses import dataclass, field
from typing import Self

from lucius_contract.messages import Directive
from lucius_contract.routing import partition_key


@dataclass(frozen=True, slots=True)
class ReplyAddress:
    """With URLs, over HTTP with the token; without, on the reply topic of the lane."""

    lane: int
    partition_key: str
    ack_url: str | None = None
    result_url: str | None = None
    heartbeat_url: str | None = None
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, directive: Directive) -> Self:
        lane, key = directive.lane, partition_key(directive.routing_key_used)
        urls = directive.callback_urls
        if urls is None:
            return cls(lane, key)
        return cls(lane, key, urls.ack, urls.result, urls.heartbeat, directive.callback_token)
