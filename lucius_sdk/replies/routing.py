"""Which way a reply goes: the directive says it."""

from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.replies.answers import Answer
from lucius_sdk.replies.outgoing import Outgoing
from lucius_sdk.replies.port import ReplyChannel


class Replies:
    """Over HTTP where the address has a URL for the reply, else by the bus."""

    def __init__(self, http: ReplyChannel, bus: ReplyChannel) -> None:
        self._http = http
        self._bus = bus

    async def send(self, address: ReplyAddress, reply: Outgoing) -> Answer:
        channel = self._bus if reply.url_in(address) is None else self._http
        return await channel.send(address, reply)

    async def check(self) -> None:
        await self._http.check()
        await self._bus.check()

    async def close(self) -> None:
        try:
            await self._http.close()
        finally:
            await self._bus.close()
