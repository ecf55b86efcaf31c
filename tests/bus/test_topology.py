"""Topics and subscriptions of the lanes."""

from datetime import timedelta
from typing import Any

import pytest

from lucius_bus.filters import MatchAll, PropertyFilter
from lucius_bus.memory import MemoryBus
from lucius_bus.topology import SubscriptionSettings, lane_topology
from tests.bus.backends import AT_ONCE, Clock, ids, message

SERVICES = ["ocr", "embedding", "sis"]


def test_there_are_sixteen_lanes_each_way() -> None:
    topics = set(lane_topology(SERVICES).topics)
    directives = {f"global-bus-p{lane}" for lane in range(16)}
    replies = {f"global-bus-replies-p{lane}" for lane in range(16)}
    assert topics == directives | replies


def test_each_service_has_a_subscription_to_the_directives_of_each_lane() -> None:
    topology = lane_topology(SERVICES)
    for lane in range(16):
        subscriptions = topology.topics[f"global-bus-p{lane}"]
        assert [one.name for one in subscriptions] == SERVICES
        assert [one.filter for one in subscriptions] == [
            PropertyFilter({"service": service}) for service in SERVICES
        ]


def test_the_invoker_has_a_subscription_to_all_replies_of_each_lane() -> None:
    topology = lane_topology(SERVICES)
    for lane in range(16):
        (subscription,) = topology.topics[f"global-bus-replies-p{lane}"]
        assert (subscription.name, subscription.filter) == ("lucius-invoker", MatchAll())


def test_subscriptions_hold_a_minute_ten_times_and_know_no_sessions() -> None:
    for subscriptions in lane_topology(SERVICES).topics.values():
        for one in subscriptions:
            assert (one.lock_duration, one.max_delivery_count) == (timedelta(seconds=60), 10)
            assert (one.requires_session, one.default_ttl) == (False, None)


def test_a_service_that_is_named_twice_has_one_subscription() -> None:
    assert lane_topology(["ocr", "sis", "ocr"]) == lane_topology(["ocr", "sis"])


async def test_a_topology_is_applied_again_when_a_service_joins() -> None:
    bus = MemoryBus(Clock())
    bus.apply(lane_topology(["ocr"]))
    await bus.publish("global-bus-p7", [message(1, "ocr"), message(2, "sis")])
    bus.apply(lane_topology(["ocr", "sis"]))
    await bus.publish("global-bus-p7", [message(3, "sis")])
    assert ids(await bus.receive("global-bus-p7", "ocr", 9, AT_ONCE)) == ["m1"]
    assert ids(await bus.receive("global-bus-p7", "sis", 9, AT_ONCE)) == ["m3"]


@pytest.mark.parametrize(
    "settings",
    [
        {"lock_duration": timedelta(0)},
        {"lock_duration": timedelta(minutes=5, seconds=1)},
        {"max_delivery_count": 0},
        {"default_ttl": timedelta(0)},
    ],
)
def test_settings_that_the_service_would_refuse_are_refused(settings: dict[str, Any]) -> None:
    (name,) = settings
    with pytest.raises(ValueError, match=name):
        SubscriptionSettings("ocr", **settings)
