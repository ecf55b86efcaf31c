"""A topology on Service Bus: created where it is missing, compared where it is there."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from azure.servicebus.management import CorrelationRuleFilter, RuleProperties, SqlRuleAction

from lucius_bus.filters import PropertyFilter
from lucius_bus.port import BusError, BusMessage, BusUnavailable, Misused
from lucius_bus.servicebus.administration import ServiceBusTopology
from lucius_bus.servicebus.administration_http import AdministrationTransport
from lucius_bus.servicebus.differences import rules_drift
from lucius_bus.topology import (
    Drift,
    SubscriptionSettings,
    Topology,
    TopologyReport,
    lane_topology,
)
from servicebus_emulator import broker as emulated
from servicebus_emulator.administration import Request, Response
from servicebus_emulator.rules import (
    DEFAULT_RULE,
    CorrelationFilter,
    Filter,
    Rule,
    SqlFilter,
    TrueFilter,
)
from servicebus_emulator.sas import Keys
from tests.emulator.administration.serving import Served, serve
from tests.runner.deadlines import DEADLINE

LANES = lane_topology(["ocr", "sis", "embedding"])
OCR = SubscriptionSettings("ocr", PropertyFilter({"service": "ocr"}))
LANE = Topology({"lane": (OCR,)})
PATH = ("lane", "ocr")


class ImpatientTransport(AdministrationTransport):
    """Waits for nothing, and remembers how long it should have."""

    def __init__(self) -> None:
        super().__init__(is_plain=True)
        self.waits: list[float] = []

    async def sleep(self, duration: float) -> None:
        self.waits.append(duration)


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serve(Served()) as served:
        yield served


@pytest.fixture
async def topology(served: Served) -> AsyncIterator[ServiceBusTopology]:
    async with asyncio.timeout(DEADLINE):
        async with ServiceBusTopology.from_connection_string(
            served.connection_string()
        ) as topology:
            yield topology


def rules_of(served: Served, *path: str) -> list[tuple[str, Filter]]:
    return [(rule.name, rule.filter) for rule in served.broker.subscription(*path).rules]


def make(served: Served, *rules: Rule, **settings: object) -> None:
    """The lane with a subscription as it is, before anything is applied."""
    served.broker.create_topic("lane", emulated.TopicSettings())
    found = emulated.SubscriptionSettings(**settings)  # type: ignore[arg-type]
    served.broker.create_subscription(*PATH, found, rules or [Rule("ocr", SERVICE_OCR)])


SERVICE_OCR = CorrelationFilter({"service": "ocr"})


async def test_all_lanes_are_created(served: Served, topology: ServiceBusTopology) -> None:
    report = await topology.apply(LANES)
    assert len(report.created) == 32 + 16 * 3 + 16
    assert (report.drift, report.missing) == ((), ())
    for topic, subscriptions in LANES.topics.items():
        found = {one.name: one for one in served.broker.subscriptions(topic)}
        assert set(found) == {one.name for one in subscriptions}
    for service in ("ocr", "sis", "embedding"):
        expected = [(service, CorrelationFilter({"service": service}))]
        assert rules_of(served, "global-bus-p7", service) == expected
    invoker = rules_of(served, "global-bus-replies-p7", "lucius-invoker")
    assert invoker == [("$Default", TrueFilter())]


async def test_applied_again_nothing_changes(served: Served, topology: ServiceBusTopology) -> None:
    await topology.apply(LANES)
    changes = served.changes
    assert await topology.apply(LANES) == TopologyReport()
    assert await topology.compare(LANES) == TopologyReport()
    assert served.changes == changes


async def test_a_subscription_never_has_another_rule(
    served: Served, topology: ServiceBusTopology
) -> None:
    """It comes with its rule, in the place where the service looks for it."""
    await topology.apply(LANE)
    (put,) = [one for one in served.requests if one.method == "PUT" and "ocr" in one.path]
    elements = re.findall(rb"<(\w+)[ >/]", put.body)
    assert elements.index(b"DefaultRuleDescription") < elements.index(b"MaxDeliveryCount")
    assert elements.index(b"RequiresSession") < elements.index(b"DefaultRuleDescription")
    assert [one for one in served.requests if "rules/" in one.path] == []


async def test_a_service_that_ignores_the_rule_gets_it_afterwards(
    served: Served, topology: ServiceBusTopology
) -> None:
    def ignore(request: Request) -> Response | None:
        body = re.sub(rb"<DefaultRule.*</DefaultRuleDescription>", b"", request.body)
        return None if body == request.body else served.app.handle(request._replace(body=body))

    served.before = ignore
    assert await topology.apply(LANE) == TopologyReport(created=("lane", "lane/ocr"))
    assert rules_of(served, *PATH) == [("ocr", SERVICE_OCR)]
    changes = [one for one in served.requests if "rules/" in one.path]
    assert [one.method for one in changes] == ["PUT", "DELETE"]


async def test_settings_are_those_of_the_topology(
    served: Served, topology: ServiceBusTopology
) -> None:
    wanted = SubscriptionSettings(
        "ocr",
        PropertyFilter({"service": "<o'cr&>", "size": 3, "big": 2**40}, "m1", "s1"),
        lock_duration=timedelta(seconds=12),
        max_delivery_count=3,
        requires_session=True,
        default_ttl=timedelta(hours=3),
        dead_letter_on_expiry=True,
    )
    report = await topology.apply(Topology({"lane": (wanted,)}))
    assert report == TopologyReport(created=("lane", "lane/ocr"))
    assert served.broker.subscription(*PATH).settings == emulated.SubscriptionSettings(
        lock_duration=12_000,
        max_delivery_count=3,
        requires_session=True,
        default_ttl=10_800_000,
        dead_letter_on_expiry=True,
    )
    properties = {"service": "<o'cr&>", "size": 3, "big": 2**40}
    expected = CorrelationFilter(properties, message_id="m1", session_id="s1")
    assert rules_of(served, *PATH) == [("ocr", expected)]


async def test_a_service_that_joins_is_added(served: Served, topology: ServiceBusTopology) -> None:
    await topology.apply(lane_topology(["ocr"]))
    report = await topology.apply(lane_topology(["ocr", "sis"]))
    assert report.created == tuple(f"global-bus-p{lane}/sis" for lane in range(16))


async def test_compare_names_what_is_missing_and_creates_nothing(
    served: Served, topology: ServiceBusTopology
) -> None:
    served.broker.create_topic("lane", emulated.TopicSettings())
    wanted = Topology({"lane": (OCR,), "other": (OCR,)})
    report = await topology.compare(wanted)
    assert report == TopologyReport(missing=("lane/ocr", "other", "other/ocr"))
    assert served.changes == 1


@pytest.mark.parametrize(
    ("settings", "setting", "wanted", "found"),
    [
        ({"lock_duration": 30_000}, "lock duration", "0:01:00", "0:00:30"),
        ({"max_delivery_count": 5}, "max delivery count", "10", "5"),
        ({"requires_session": True}, "sessions", "False", "True"),
        ({"default_ttl": 60_000}, "default ttl", "None", "0:01:00"),
        ({"dead_letter_on_expiry": True}, "dead letter on expiry", "False", "True"),
        ({"status": "ReceiveDisabled"}, "status", "Active", "ReceiveDisabled"),
    ],
)
async def test_settings_that_differ_are_told_and_left(
    served: Served,
    topology: ServiceBusTopology,
    settings: dict[str, object],
    setting: str,
    wanted: str,
    found: str,
) -> None:
    make(served, **settings)
    changes = served.changes
    assert await topology.apply(LANE) == TopologyReport(
        drift=(Drift("lane/ocr", setting, wanted, found),)
    )
    assert served.changes == changes


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (DEFAULT_RULE, "$Default: 1=1"),
        (Rule("a", SqlFilter("service = 'ocr'")), "a: service = 'ocr'"),
        (Rule("a", CorrelationFilter({"service": "OCR"})), "a: service = 'OCR'"),
        (
            Rule("a", CorrelationFilter({"service": "ocr"}, subject="x")),
            "a: service = 'ocr' and sys.label = 'x'",
        ),
        (
            Rule("a", CorrelationFilter({"service": "ocr", "b": True})),
            "a: b = True and service = 'ocr'",
        ),
    ],
)
async def test_another_filter_is_told_and_left(
    served: Served, topology: ServiceBusTopology, found: Rule, shown: str
) -> None:
    make(served, found)
    assert await topology.apply(LANE) == TopologyReport(
        drift=(Drift("lane/ocr", "filter", "service = 'ocr'", shown),)
    )
    assert rules_of(served, *PATH) == [(found.name, found.filter)]


async def test_a_filter_on_a_number_is_not_one_on_its_digits(
    served: Served, topology: ServiceBusTopology
) -> None:
    make(served, Rule("a", CorrelationFilter({"size": "1"})))
    wanted = SubscriptionSettings("ocr", PropertyFilter({"size": 1}))
    (drift,) = (await topology.compare(Topology({"lane": (wanted,)}))).drift
    assert (drift.wanted, drift.found) == ("size = 1", "a: size = '1'")


async def test_rules_nobody_wants_are_told(served: Served, topology: ServiceBusTopology) -> None:
    make(served, Rule("mine", SERVICE_OCR), DEFAULT_RULE)
    (drift,) = (await topology.apply(LANE)).drift
    assert drift == Drift("lane/ocr", "rule", "nothing", "$Default: 1=1")
    assert len(rules_of(served, *PATH)) == 2


async def test_subscriptions_nobody_wants_are_told(
    served: Served, topology: ServiceBusTopology
) -> None:
    make(served)
    served.broker.create_subscription("lane", "old", emulated.SubscriptionSettings())
    report = await topology.apply(LANE)
    assert report.drift == (Drift("lane/old", "subscription", "none", "exists"),)
    assert len(served.broker.subscriptions("lane")) == 2


async def test_a_subscription_without_rules_is_told(
    served: Served, topology: ServiceBusTopology
) -> None:
    make(served)
    served.broker.delete_rule(*PATH, "ocr")
    (drift,) = (await topology.compare(LANE)).drift
    assert drift == Drift("lane/ocr", "filter", "service = 'ocr'", "nothing")


async def test_a_rule_of_any_name_is_right(served: Served, topology: ServiceBusTopology) -> None:
    make(served, Rule("$Default", SERVICE_OCR))
    assert await topology.compare(LANE) == TopologyReport()


async def test_everything_can_be_said_in_sql(served: Served, topology: ServiceBusTopology) -> None:
    make(served, Rule("all", SqlFilter("1 = 1")))
    assert await topology.compare(Topology({"lane": (SubscriptionSettings("ocr"),)})) == (
        TopologyReport()
    )


async def test_topics_that_swallow_duplicates_are_told(
    served: Served, topology: ServiceBusTopology
) -> None:
    settings = emulated.TopicSettings(requires_duplicate_detection=True)
    served.broker.create_topic("lane", settings)
    report = await topology.compare(Topology({"LANE": ()}))
    assert report.drift == (Drift("LANE", "duplicate detection", "False", "True"),)


async def test_two_may_apply_at_the_same_time(served: Served, topology: ServiceBusTopology) -> None:
    async with ServiceBusTopology.from_connection_string(served.connection_string()) as other:
        one, two = await asyncio.gather(topology.apply(LANES), other.apply(LANES))
    assert not set(one.created) & set(two.created)
    assert len(one.created) + len(two.created) == 96
    assert one.drift == two.drift == ()


async def test_who_loses_a_race_finds_what_the_other_created(
    served: Served, topology: ServiceBusTopology
) -> None:
    """The other is quicker by one request, each time."""

    def interfere(request: Request) -> Response | None:
        if request.method == "PUT":
            served.app.handle(request)
        return None

    served.before = interfere
    assert await topology.apply(LANE) == TopologyReport()
    assert rules_of(served, *PATH) == [("ocr", SERVICE_OCR)]


class CountingTransport(AdministrationTransport):
    def __init__(self) -> None:
        super().__init__(is_plain=True)
        self.under_way = 0
        self.most = 0

    async def send(self, request: Any, **options: Any) -> Any:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await super().send(request, **options)
        finally:
            self.under_way -= 1


async def test_eight_requests_at_most_are_under_way(served: Served) -> None:
    text, transport = served.connection_string(), CountingTransport()
    async with ServiceBusTopology.from_connection_string(text, transport=transport) as topology:
        await topology.apply(LANES)
    assert transport.most == 8


async def test_who_is_throttled_waits_as_long_as_it_is_told(served: Served) -> None:
    busy = iter([True, True])

    def throttle(_request: Request) -> Response | None:
        answer = Response(429, b"<Error><Code>429</Code></Error>", headers=(("Retry-After", "7"),))
        return answer if next(busy, False) else None

    served.before = throttle
    transport = ImpatientTransport()
    text = served.connection_string()
    async with ServiceBusTopology.from_connection_string(text, transport=transport) as topology:
        report = await topology.apply(LANE)
    assert report.created == ("lane", "lane/ocr")
    assert transport.waits == [7, 7]


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (400, Misused, "no such setting"),
        (403, Misused, "no such setting"),
        (401, Misused, "Manage claim"),
        (500, BusUnavailable, "cannot be reached"),
        (503, BusUnavailable, "cannot be reached"),
        (301, BusUnavailable, "cannot be reached"),
    ],
)
async def test_errors_say_what_to_do(
    served: Served, status: int, kind: type[BusError], text: str
) -> None:
    body = f"<Error><Code>{status}</Code><Detail>no such setting</Detail></Error>"
    served.before = lambda _: Response(status, body.encode())
    source = served.connection_string()
    async with ServiceBusTopology.from_connection_string(
        source, transport=ImpatientTransport()
    ) as topology:
        with pytest.raises(kind, match=text):
            await topology.apply(LANES)


async def test_a_wrong_key_needs_the_manage_claim() -> None:
    async with serve(Served(Keys({"Root": "right"}))) as guarded:
        text = guarded.connection_string("wrong")
        async with ServiceBusTopology.from_connection_string(text) as topology:
            with pytest.raises(Misused, match="Manage claim"):
                await topology.compare(LANE)


async def test_nobody_there_is_unavailable(served: Served) -> None:
    text = served.connection_string().replace(str(served.port), "1")
    async with ServiceBusTopology.from_connection_string(
        text, transport=ImpatientTransport()
    ) as topology:
        with pytest.raises(BusUnavailable, match="cannot be reached"):
            await topology.apply(LANE)


async def test_an_answer_that_is_not_xml_is_unavailable(
    served: Served, topology: ServiceBusTopology
) -> None:
    served.before = lambda _: Response(200, b"hello")
    with pytest.raises(BusUnavailable):
        await topology.apply(LANE)


async def test_an_entity_that_comes_and_goes_is_for_a_later_try(
    served: Served, topology: ServiceBusTopology
) -> None:
    served.before = lambda request: Response(409) if request.method == "PUT" else None
    with pytest.raises(BusUnavailable, match="try again"):
        await topology.apply(LANE)


class OnlyOddOnes:
    def matches(self, message: BusMessage, /) -> bool:
        return len(message.body) % 2 == 1


async def test_a_filter_that_service_bus_has_not_is_refused_before_anything_is_created(
    served: Served, topology: ServiceBusTopology
) -> None:
    odd = SubscriptionSettings("odd", OnlyOddOnes())
    with pytest.raises(Misused, match="filter"):
        await topology.apply(Topology({"lane": (), "other": (odd,)}))
    assert served.requests == []


@pytest.mark.parametrize("text", ["", "Endpoint=x", "Endpoint=sb://a;SharedAccessKey=s3cret"])
def test_what_is_no_connection_string_is_refused_without_its_secrets(text: str) -> None:
    with pytest.raises(Misused, match="connection string") as refused:
        ServiceBusTopology.from_connection_string(text)
    assert "s3cret" not in str(refused.value)


class Credential:
    def __init__(self, *, is_logged_in: bool = True) -> None:
        self.is_logged_in = is_logged_in
        self.scopes: list[str] = []

    async def get_token(self, *scopes: str, **_options: object) -> AccessToken:
        if not self.is_logged_in:
            raise ClientAuthenticationError("log in first")
        self.scopes += scopes
        return AccessToken("a-token", 4_000_000_000)

    async def close(self) -> None: ...

    async def __aenter__(self) -> "Credential":
        return self

    async def __aexit__(self, *_error: object) -> None: ...


async def test_an_identity_is_asked_for_a_token(served: Served) -> None:
    credential, transport = Credential(), ImpatientTransport()
    host = f"127.0.0.1:{served.port}"
    async with ServiceBusTopology(host, credential, transport=transport) as topology:
        await topology.apply(LANE)
    assert set(credential.scopes) == {"https://servicebus.azure.net//.default"}
    assert {one.headers["authorization"] for one in served.requests} == {"Bearer a-token"}


async def test_an_identity_without_a_token_says_why(served: Served) -> None:
    credential = Credential(is_logged_in=False)
    async with ServiceBusTopology(f"127.0.0.1:{served.port}", credential) as topology:
        with pytest.raises(Misused, match="log in first"):
            await topology.apply(LANE)
    assert served.requests == []


async def test_a_request_that_is_tried_again_is_the_same(served: Served) -> None:
    """With an identity, whose tokens the client gives to https only."""
    refused: list[Request] = []

    def busy_at_first(request: Request) -> Response | None:
        if request.method != "PUT" or "ocr" not in request.path or refused:
            return None
        refused.append(request)
        return Response(503)

    served.before = busy_at_first
    host, transport = f"127.0.0.1:{served.port}", ImpatientTransport()
    async with ServiceBusTopology(host, Credential(), transport=transport) as topology:
        assert (await topology.apply(LANE)).created == ("lane", "lane/ocr")
    assert [one.body for one in served.requests if one.path == refused[0].path] == (
        [refused[0].body] * 2
    )


def test_a_rule_with_an_action_is_another_rule() -> None:
    correlation = CorrelationRuleFilter(properties={"service": "ocr"})
    action = SqlRuleAction("SET service = 'sis'")
    rule = RuleProperties("a", filter=correlation, action=action, created_at_utc=None)
    (drift,) = rules_drift("lane/ocr", OCR.filter, [rule])
    assert drift.found == "a: service = 'ocr' with an action"
