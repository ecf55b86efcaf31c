"""Topics, subscriptions and rules through the real asyncio client."""

from datetime import UTC, datetime, timedelta

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.servicebus.aio.management import ServiceBusAdministrationClient as Client
from azure.servicebus.management import (
    CorrelationRuleFilter,
    FalseRuleFilter,
    SqlRuleAction,
    SqlRuleFilter,
    TrueRuleFilter,
)

from servicebus_emulator.administration import Request
from servicebus_emulator.broker import SubscriptionSettings, TopicSettings
from servicebus_emulator.rules import CorrelationFilter, SqlFilter, TrueFilter
from tests.emulator.administration.serving import START, Served

OCR = ("lane", "ocr")


async def test_a_topic_is_created_got_updated_and_deleted(client: Client, served: Served) -> None:
    await client.create_topic(
        "lane", default_message_time_to_live="PT1H", requires_duplicate_detection=True
    )
    topic = await client.get_topic("lane")
    assert topic.requires_duplicate_detection is True
    await client.update_topic(topic, user_metadata="new", status="SendDisabled")
    assert served.broker.topic("lane").settings == TopicSettings(
        default_ttl=3_600_000,
        requires_duplicate_detection=True,
        user_metadata="new",
        status="SendDisabled",
        max_message_bytes=256 * 1024,
    )
    await client.delete_topic("lane")
    with pytest.raises(ResourceNotFoundError):
        await client.get_topic("lane")


async def test_a_subscription_is_created_got_updated_and_deleted(
    client: Client, served: Served
) -> None:
    await client.create_topic("lane")
    await client.create_subscription(
        *OCR,
        lock_duration=timedelta(seconds=5),
        max_delivery_count=2,
        requires_session=True,
        default_message_time_to_live="P1D",
        dead_lettering_on_message_expiration=True,
        dead_lettering_on_filter_evaluation_exceptions=False,
    )
    found = await client.get_subscription("LANE", "OCR")
    await client.update_subscription("lane", found, max_delivery_count=9)
    assert served.broker.subscription(*OCR).settings == SubscriptionSettings(
        lock_duration=5000,
        max_delivery_count=9,
        requires_session=True,
        default_ttl=86_400_000,
        dead_letter_on_expiry=True,
        dead_letter_on_filter_error=False,
    )
    await client.delete_subscription(*OCR)
    with pytest.raises(ResourceNotFoundError):
        await client.get_subscription(*OCR)


async def test_subscriptions_need_their_topic(client: Client) -> None:
    with pytest.raises(ResourceNotFoundError):
        await client.create_subscription(*OCR)
    with pytest.raises(ResourceNotFoundError):
        [one async for one in client.list_subscriptions("lane")]


async def test_a_subscription_exists_once(client: Client) -> None:
    await client.create_topic("lane")
    await client.create_subscription(*OCR)
    with pytest.raises(ResourceExistsError):
        await client.create_subscription(*OCR)


async def test_topics_and_subscriptions_are_listed(client: Client) -> None:
    for topic in ("b", "a"):
        await client.create_topic(topic)
        for name in ("sis", "ocr"):
            await client.create_subscription(topic, name)
    assert [one.name async for one in client.list_topics()] == ["a", "b"]
    assert [one.name async for one in client.list_subscriptions("a")] == ["ocr", "sis"]
    paged = client.list_subscriptions("a", max_page_size=1)
    assert [one.name async for one in paged] == ["ocr", "sis"]
    counts = [one.subscription_count async for one in client.list_topics_runtime_properties()]
    assert counts == [2, 2]


async def test_a_new_subscription_gets_everything(client: Client, served: Served) -> None:
    await client.create_topic("lane")
    await client.create_subscription(*OCR)
    (rule,) = [one async for one in client.list_rules(*OCR)]
    assert (rule.name, type(rule.filter)) == ("$Default", TrueRuleFilter)
    (kept,) = served.broker.subscription(*OCR).rules
    assert kept.filter == TrueFilter()


async def test_rules_of_every_kind_come_back_as_they_were(client: Client) -> None:
    await client.create_topic("lane")
    await client.create_subscription(*OCR)
    properties = {
        "text": "a <b> & 'c'",
        "int": 3,
        "long": 2**40,
        "float": 1.5,
        "truth": True,
        "time": datetime(2025, 3, 1, tzinfo=UTC),
        "span": timedelta(minutes=3),
    }
    correlation = CorrelationRuleFilter(label="urgent", to="x", properties=properties)  # type: ignore[arg-type]
    await client.create_rule(*OCR, "one", filter=correlation)
    sql = SqlRuleFilter("a > @p", parameters={"@p": 7})
    await client.create_rule(*OCR, "two", filter=sql)
    await client.create_rule(*OCR, "three", filter=FalseRuleFilter())
    one, two = await client.get_rule(*OCR, "one"), await client.get_rule(*OCR, "two")
    assert isinstance(one.filter, CorrelationRuleFilter)
    assert isinstance(two.filter, SqlRuleFilter)
    assert (one.filter.label, one.filter.to, one.filter.correlation_id) == ("urgent", "x", None)
    assert one.filter.properties == properties
    assert (two.filter.sql_expression, two.filter.parameters) == ("a > @p", {"@p": 7})
    listed = {rule.name: type(rule.filter) async for rule in client.list_rules(*OCR)}
    assert listed == {
        "$Default": TrueRuleFilter,
        "one": CorrelationRuleFilter,
        "two": SqlRuleFilter,
        "three": FalseRuleFilter,
    }


async def test_rules_are_updated_and_deleted(client: Client, served: Served) -> None:
    await client.create_topic("lane")
    await client.create_subscription(*OCR)
    rule = await client.get_rule(*OCR, "$Default")
    await client.update_rule(*OCR, rule, filter=SqlRuleFilter("a = 1"))
    (kept,) = served.broker.subscription(*OCR).rules
    assert kept.filter == SqlFilter("a = 1")
    with pytest.raises(ResourceExistsError):
        await client.create_rule(*OCR, "$default")
    await client.delete_rule(*OCR, "$Default")
    assert served.broker.subscription(*OCR).rules == ()
    for missing in (client.delete_rule(*OCR, "$Default"), client.update_rule(*OCR, rule)):
        with pytest.raises(ResourceNotFoundError):
            await missing
    with pytest.raises(ResourceNotFoundError):
        await client.get_rule(*OCR, "$Default")


async def test_rules_that_cannot_be_used_are_refused(client: Client) -> None:
    await client.create_topic("lane")
    await client.create_subscription(*OCR)
    with pytest.raises(HttpResponseError, match="SubCode=40000"):
        await client.create_rule(*OCR, "one", filter=SqlRuleFilter("a ="))
    with pytest.raises(HttpResponseError, match="action"):
        await client.create_rule(*OCR, "one", action=SqlRuleAction("SET a = 1"))


async def test_times_and_counts_are_shown(client: Client, served: Served) -> None:
    await client.create_topic("lane")
    await client.create_subscription(*OCR)
    served.clock.now += 1000
    await client.update_subscription("lane", await client.get_subscription(*OCR))
    found = await client.get_subscription_runtime_properties(*OCR)
    created = datetime.fromtimestamp(START / 1000, UTC)
    assert (found.created_at_utc, found.updated_at_utc) == (created, created + timedelta(seconds=1))
    assert (found.total_message_count, found.active_message_count) == (0, 0)
    topic = await client.get_topic_runtime_properties("lane")
    assert (topic.subscription_count, topic.size_in_bytes) == (1, 0)


async def test_the_first_rule_can_come_with_the_subscription(
    client: Client, served: Served
) -> None:
    served.broker.create_topic("lane", TopicSettings())
    space = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect"
    rule = (
        '<DefaultRuleDescription><Filter i:type="CorrelationFilter"><SessionId>s</SessionId>'
        "</Filter><Name>mine</Name></DefaultRuleDescription>"
    )
    description = (
        f'<SubscriptionDescription xmlns="{space}" '
        f'xmlns:i="http://www.w3.org/2001/XMLSchema-instance">{rule}</SubscriptionDescription>'
    )
    atom = f'<entry xmlns="http://www.w3.org/2005/Atom"><content>{description}</content></entry>'
    path = "/lane/subscriptions/ocr"
    assert served.handle(Request("PUT", path, body=atom.encode())).status == 201
    (kept,) = served.broker.subscription(*OCR).rules
    assert (kept.name, kept.filter) == ("mine", CorrelationFilter(session_id="s"))
