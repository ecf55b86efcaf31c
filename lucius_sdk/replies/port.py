"""How a reply gets to the orchestrator."""

from typing import Protocol

from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.replies.answers import Answer
from lucius_sdk.replies.outgoing import Outgoing


class ReplyChannel(Protocol):
    """Belongs to one event loop. Errors of the libraries beneath never come out of it."""

    async def send(self, address: ReplyAddress, reply: Outgoing) -> Answer:
        """One try, which ends within the channel's own time limit. Many may be under way at once.
        The reply may have arrived even if there is an error, so sending the same bytes again is
        always right. `ReplyUnavailable`, `ReplyUnauthorised`."""

    async def check(self) -> None:
        """Whether replies can leave, as far as it can be known without one. `ReplyUnavailable`."""

    async def close(self) -> None:
        """Returns when nothing leaves any more. After it every `send` is `ReplyUnavailable`;
        closing twice is nothing."""
