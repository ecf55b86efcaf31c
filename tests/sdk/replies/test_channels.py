"""What all channels promise."""

import importlib
import inspect
import pkgutil

import pytest

import lucius_sdk.replies
from lucius_bus.memory import MemoryBus
from lucius_sdk.addresses import ReplyAddress
from lucius_sdk.replies.answers import ReplyUnavailable, Verdict
from lucius_sdk.replies.bus import BusReplies
from lucius_sdk.replies.http import HttpReplies
from lucius_sdk.replies.outgoing import outgoing
from lucius_sdk.replies.port import ReplyChannel
from lucius_sdk.replies.routing import Replies
from tests.sdk.replies.orchestrator import Orchestrator
from tests.sdk.replies.samples import ON_THE_BUS, ack, over_http

CHANNELS: dict[str, type[ReplyChannel]] = {
    "http": HttpReplies,
    "bus": BusReplies,
    "routed to http": Replies,
    "routed to the bus": Replies,
}


class Stage:
    """A channel, and where its replies arrive."""

    def __init__(self, channel: ReplyChannel, orchestrator: Orchestrator, bus: MemoryBus) -> None:
        self.channel = channel
        self.address = ON_THE_BUS
        self._orchestrator = orchestrator
        self._bus = bus

    async def go_away(self) -> None:
        await self._orchestrator.go_away()
        self._bus.go_away()

    async def come_back(self) -> None:
        await self._orchestrator.come_back()
        self._bus.come_back()


@pytest.fixture(params=CHANNELS)
async def stage(
    request: pytest.FixtureRequest,
    http: HttpReplies,
    bus: MemoryBus,
    orchestrator: Orchestrator,
) -> Stage:
    kind = CHANNELS[request.param]
    on_bus = BusReplies(bus)
    made: dict[type[ReplyChannel], ReplyChannel] = {
        HttpReplies: http,
        BusReplies: on_bus,
        Replies: Replies(http, on_bus),
    }
    stage = Stage(made[kind], orchestrator, bus)
    if "http" in request.param:
        stage.address = over_http(orchestrator.origin)
    return stage


def test_every_channel_is_in_this_suite() -> None:
    found = set()
    for module in pkgutil.iter_modules(lucius_sdk.replies.__path__, "lucius_sdk.replies."):
        members = inspect.getmembers(importlib.import_module(module.name), inspect.isclass)
        found |= {kind for _, kind in members if hasattr(kind, "send") and hasattr(kind, "check")}
    assert found - {ReplyChannel} == set(CHANNELS.values())


async def test_a_reply_is_delivered(stage: Stage) -> None:
    answer = await stage.channel.send(stage.address, outgoing(ack()))
    assert answer.verdict in {Verdict.APPLIED, Verdict.SENT}


async def test_the_other_side_may_go_away_and_come_back(stage: Stage) -> None:
    await stage.go_away()
    with pytest.raises(ReplyUnavailable):
        await stage.channel.send(stage.address, outgoing(ack()))
    await stage.come_back()
    await stage.channel.check()
    answer = await stage.channel.send(stage.address, outgoing(ack()))
    assert answer.verdict in {Verdict.APPLIED, Verdict.SENT}


async def test_nothing_leaves_after_closing_and_closing_twice_is_nothing(stage: Stage) -> None:
    await stage.channel.close()
    await stage.channel.close()
    with pytest.raises(ReplyUnavailable, match="closed"):
        await stage.channel.send(stage.address, outgoing(ack()))


async def test_each_directive_says_which_way_its_replies_go(
    replies: Replies, orchestrator: Orchestrator
) -> None:
    by_bus = await replies.send(ON_THE_BUS, outgoing(ack(job_id="1")))
    by_http = await replies.send(over_http(orchestrator.origin), outgoing(ack(job_id="2")))
    assert (by_bus.verdict, by_http.verdict) == (Verdict.SENT, Verdict.APPLIED)
    assert [request.body for request in orchestrator.requests] == [ack(job_id="2").to_bytes()]


async def test_an_address_without_a_url_for_the_reply_means_the_bus(
    replies: Replies, orchestrator: Orchestrator
) -> None:
    address = ReplyAddress(3, "acme", result_url=orchestrator.origin)
    assert (await replies.send(address, outgoing(ack()))).verdict is Verdict.SENT
