"""Config.json: what is read, what is refused, and what a broker makes of it."""

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from servicebus_emulator.broker import Broker, BrokerError, Record
from servicebus_emulator.broker.settings import QueueSettings, SubscriptionSettings, TopicSettings
from servicebus_emulator.config import (
    ConfigError,
    NamespaceConfig,
    QueueConfig,
    SubscriptionConfig,
    TopicConfig,
    apply,
    load_config,
    parse_config,
)
from servicebus_emulator.rules import DEFAULT_RULE, CorrelationFilter, Rule, SqlFilter

HOUR = 3_600_000


def document(**namespace: object) -> dict[str, Any]:
    return {
        "UserConfig": {
            "Namespaces": [{"Name": "sbemulatorns", **namespace}],
            "Logging": {"Type": "File"},
        }
    }


def queue(**properties: object) -> dict[str, Any]:
    return document(Queues=[{"Name": "queue.1", "Properties": properties}])


def subscription(**members: object) -> dict[str, Any]:
    return document(Topics=[{"Name": "topic.1", "Subscriptions": [{"Name": "sub", **members}]}])


def rule(**properties: object) -> dict[str, Any]:
    return subscription(Rules=[{"Name": "rule", "Properties": properties}])


FULL = document(
    Queues=[
        {
            "Name": "queue.1",
            "Properties": {
                "DeadLetteringOnMessageExpiration": False,
                "DefaultMessageTimeToLive": "PT1H",
                "DuplicateDetectionHistoryTimeWindow": "PT20S",
                "ForwardDeadLetteredMessagesTo": "",
                "ForwardTo": "",
                "LockDuration": "PT1M",
                "MaxDeliveryCount": 3,
                "RequiresDuplicateDetection": False,
                "RequiresSession": False,
            },
        },
        {"Name": "bare"},
    ],
    Topics=[
        {
            "Name": "topic.1",
            "Properties": {
                "DefaultMessageTimeToLive": "PT1H",
                "DuplicateDetectionHistoryTimeWindow": "PT20S",
                "RequiresDuplicateDetection": True,
            },
            "Subscriptions": [
                {
                    "Name": "subscription.1",
                    "Properties": {
                        "DeadLetteringOnMessageExpiration": True,
                        "DefaultMessageTimeToLive": "PT1H",
                        "LockDuration": "PT30S",
                        "MaxDeliveryCount": 3,
                        "ForwardDeadLetteredMessagesTo": "queue.1",
                        "ForwardTo": "",
                        "RequiresSession": True,
                    },
                    "Rules": [
                        {
                            "Name": "correlated",
                            "Properties": {
                                "FilterType": "Correlation",
                                "CorrelationFilter": {
                                    "ContentType": "application/text",
                                    "CorrelationId": "id1",
                                    "Label": "subject1",
                                    "MessageId": "msgid1",
                                    "ReplyTo": "someQueue",
                                    "ReplyToSessionId": "sessionId",
                                    "SessionId": "session1",
                                    "To": "xyz",
                                    "Properties": {"prop1": "value1", "n": 3, "yes": True},
                                },
                            },
                        },
                        {
                            "Name": "sql",
                            "Properties": {
                                "FilterType": "Sql",
                                "SqlFilter": {"SqlExpression": "sys.MessageId = '123456'"},
                            },
                        },
                    ],
                },
                {"Name": "all"},
            ],
        }
    ],
)


def test_a_full_file() -> None:
    correlated = CorrelationFilter(
        {"prop1": "value1", "n": 3, "yes": True},
        message_id="msgid1",
        correlation_id="id1",
        to="xyz",
        reply_to="someQueue",
        subject="subject1",
        session_id="session1",
        reply_to_session_id="sessionId",
        content_type="application/text",
    )
    first = SubscriptionConfig(
        "subscription.1",
        SubscriptionSettings(
            lock_duration=30_000,
            max_delivery_count=3,
            default_ttl=HOUR,
            dead_letter_on_expiry=True,
            requires_session=True,
            forward_dead_letters_to="queue.1",
        ),
        (Rule("correlated", correlated), Rule("sql", SqlFilter("sys.MessageId = '123456'"))),
    )
    assert parse_config(FULL) == NamespaceConfig(
        "sbemulatorns",
        (
            QueueConfig(
                "queue.1",
                QueueSettings(default_ttl=HOUR, duplicate_window=20_000, max_delivery_count=3),
            ),
            QueueConfig("bare", QueueSettings()),
        ),
        (
            TopicConfig(
                "topic.1",
                TopicSettings(
                    default_ttl=HOUR, duplicate_window=20_000, requires_duplicate_detection=True
                ),
                (first, SubscriptionConfig("all", SubscriptionSettings(), None)),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("PT5S", 5000),
        ("PT1M30S", 90_000),
        ("PT0.25S", 250),
        ("PT2H", 2 * HOUR),
        ("P1D", 24 * HOUR),
        ("P1DT1H", 25 * HOUR),
        ("P2W", 14 * 24 * HOUR),
        ("P1M", 30 * 24 * HOUR),
        ("P1Y", 365 * 24 * HOUR),
        ("P10675199DT2H48M5.4775807S", None),
    ],
)
def test_durations(text: str, milliseconds: int | None) -> None:
    config = parse_config(queue(DefaultMessageTimeToLive=text))
    assert config.queues[0].settings.default_ttl == milliseconds


@pytest.mark.parametrize("text", ["", "P", "PT", "1M", "PT1M ", "pt1m", "P1S", "PT-1S", "PT0S", 60])
def test_what_is_no_duration_is_refused(text: object) -> None:
    with pytest.raises(ConfigError, match=r"Queues\[0\].Properties.LockDuration: .*such as PT30S"):
        parse_config(queue(LockDuration=text))


def test_properties_of_the_service_beyond_the_emulator_of_microsoft() -> None:
    config = parse_config(
        queue(MaxMessageSizeInKilobytes=1024, MaxSizeInMegabytes=5, Status="SendDisabled")
    )
    assert config.queues[0].settings == QueueSettings(
        max_message_bytes=1024 * 1024, max_size_bytes=5 * 1024 * 1024, status="SendDisabled"
    )


def test_null_is_as_good_as_absent() -> None:
    assert parse_config(queue(LockDuration=None)).queues[0].settings == QueueSettings()
    assert parse_config(document(Queues=None, Topics=None)) == parse_config(document())


NAMESPACE = "UserConfig.Namespaces[0]"
SUBSCRIPTION = f"{NAMESPACE}.Topics[0].Subscriptions[0]"
RULE = f"{SUBSCRIPTION}.Rules[0].Properties"
SQL = {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "1=1"}}


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ([], "the document: an object is expected, not an array"),
        ({}, "UserConfig: an object is expected, not nothing"),
        ({"Config": {}}, "Config: not known here, where UserConfig"),
        ({"UserConfig": {"Namespaces": []}}, "UserConfig.Namespaces: exactly one namespace"),
        ({"UserConfig": {"Namespaces": {}}}, "UserConfig.Namespaces: an array is expected"),
        (document(Name=""), f"{NAMESPACE}.Name: a text is expected, not ''"),
        (document(Queue=[]), f"{NAMESPACE}.Queue: not known here, where Name, Queues, Topics"),
        (document(Queues=[1]), f"{NAMESPACE}.Queues[0]: an object is expected, not 1"),
        (document(Queues=[{}]), f"{NAMESPACE}.Queues[0].Name: a text is expected, not nothing"),
        (document(Queues=[{"Name": "a b"}]), f"{NAMESPACE}.Queues[0].Name: letters, digits"),
        (document(Queues=[{"Name": "a/"}]), f"{NAMESPACE}.Queues[0].Name: letters, digits"),
        (queue(LockDuraton="PT1M"), "Properties.LockDuraton: not known here, where LockDuration"),
        (queue(MaxDeliveryCount=0), "MaxDeliveryCount: a whole number from 1 on is expected"),
        (queue(MaxDeliveryCount=True), "MaxDeliveryCount: a whole number from 1 on is expected"),
        (queue(MaxDeliveryCount="3"), "MaxDeliveryCount: a whole number from 1 on is expected"),
        (queue(RequiresSession="no"), "RequiresSession: true or false is expected, not 'no'"),
        (queue(Status="On"), "Status: one of Active, Disabled"),
        (queue(LockDuration="P10675199D"), "LockDuration: a duration that ends is expected"),
        (queue(ForwardTo=3), "ForwardTo: a text is expected, not 3"),
        (queue(ForwardTo="x"), "ForwardTo: no queue or topic of the file is named x"),
        (
            subscription(Properties={"ForwardDeadLetteredMessagesTo": "x"}),
            f"{SUBSCRIPTION}.Properties.ForwardDeadLetteredMessagesTo: no queue or topic",
        ),
        (
            document(Queues=[{"Name": "a"}, {"Name": "A"}]),
            f"{NAMESPACE}.Queues[1].Name: A is declared twice, first at {NAMESPACE}.Queues[0]",
        ),
        (
            document(Queues=[{"Name": "a"}], Topics=[{"Name": "a"}]),
            f"{NAMESPACE}.Topics[0].Name: a is declared twice, first at {NAMESPACE}.Queues[0]",
        ),
        (subscription(Filter=1), f"{SUBSCRIPTION}.Filter: not known here"),
        (rule(), f"{RULE}.FilterType: one of Correlation, Sql is expected, not nothing"),
        (rule(FilterType="SqlFilter"), f"{RULE}.FilterType: one of Correlation, Sql"),
        (rule(FilterType="Sql"), f"{RULE}.SqlFilter: an object is expected, not nothing"),
        (
            rule(FilterType="Sql", SqlFilter={"SqlExpression": "a ="}),
            f"{RULE}.SqlFilter.SqlExpression: a value is expected at position 3",
        ),
        (
            rule(FilterType="Correlation", CorrelationFilter={}),
            f"{RULE}.CorrelationFilter: at least one of ContentType",
        ),
        (
            rule(FilterType="Correlation", CorrelationFilter={"Subject": "x"}),
            f"{RULE}.CorrelationFilter.Subject: not known here",
        ),
        (
            rule(FilterType="Correlation", CorrelationFilter={"Properties": {}}),
            f"{RULE}.CorrelationFilter.Properties: an object with at least one member",
        ),
        (
            rule(FilterType="Correlation", CorrelationFilter={"Properties": {"a": [1]}}),
            f"{RULE}.CorrelationFilter.Properties.a: a text, a number, true or false",
        ),
        (
            rule(**SQL, Action={"SqlExpression": "SET a = 1"}),
            f"{RULE}: rule 'rule' has an action, and actions (SET, REMOVE) are not supported",
        ),
    ],
)
def test_an_error_names_the_place_and_what_is_allowed(data: Any, complaint: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_config(data)
    assert complaint in str(raised.value)


def test_an_empty_action_is_none() -> None:
    config = parse_config(rule(**SQL, Action={"SqlExpression": ""}))
    assert config.topics[0].subscriptions[0].rules == (Rule("rule", SqlFilter("1=1")),)


def test_a_file_is_read_with_or_without_a_byte_order_mark(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig"):
        path = tmp_path / "Config.json"
        path.write_text(json.dumps(FULL), encoding)
        assert load_config(path) == parse_config(FULL)


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00"])
def test_a_file_that_is_not_json_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "Config.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"Config\.json is not JSON"):
        load_config(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"Config\.json cannot be read: No such file"):
        load_config(tmp_path / "Config.json")


def test_an_error_in_a_file_names_file_and_place(tmp_path: Path) -> None:
    path = tmp_path / "Config.json"
    path.write_text(json.dumps(queue(Status="On")))
    with pytest.raises(ConfigError, match=r"Config\.json: UserConfig\.Namespaces\[0\]"):
        load_config(path)


def broker(record: Callable[[Record], None] | None = None) -> Broker:
    numbers = count(1)
    return Broker(lambda: 0, lambda: next(numbers).to_bytes(16, "big"), record)


def test_a_broker_gets_what_the_file_declares() -> None:
    made = broker()
    config = parse_config(FULL)
    apply(made, config)
    assert {one.name: one.settings for one in made.queues()} == {
        one.name: one.settings for one in config.queues
    }
    (topic,) = config.topics
    assert made.topic("topic.1").settings == topic.settings
    first, second = topic.subscriptions
    assert made.subscription("topic.1", first.name).settings == first.settings
    assert made.subscription("topic.1", first.name).rules == first.rules
    assert made.subscription("topic.1", second.name).rules == (DEFAULT_RULE,)


def test_a_queue_may_forward_to_one_that_the_file_declares_later() -> None:
    made = broker()
    first = {"Name": "a", "Properties": {"ForwardTo": "b"}}
    apply(made, parse_config(document(Queues=[first, {"Name": "b"}])))
    assert made.queue("a").settings.forward_to == "b"


def test_the_same_file_again_changes_nothing() -> None:
    records: list[Record] = []
    made = broker(records.append)
    apply(made, parse_config(FULL))
    records.clear()
    apply(made, parse_config(FULL))
    assert records == []


def test_a_changed_file_changes_what_exists_and_leaves_the_rest() -> None:
    made = broker()
    made.create_queue("mine", QueueSettings())
    apply(made, parse_config(FULL))
    rules = [{"Name": "SQL", "Properties": SQL}, {"Name": "more", "Properties": SQL}]
    changed = {
        "Name": "TOPIC.1",
        "Properties": {"RequiresDuplicateDetection": True, "DefaultMessageTimeToLive": "P1D"},
        "Subscriptions": [
            {"Name": "all", "Rules": rules, "Properties": {"LockDuration": "PT7S"}},
            {"Name": "new"},
        ],
    }
    apply(made, parse_config(document(Queues=[{"Name": "queue.1"}], Topics=[changed])))
    assert made.topic("topic.1").settings.default_ttl == 24 * HOUR
    assert made.queue("mine").settings == made.queue("queue.1").settings == QueueSettings()
    everything = made.subscription("topic.1", "all")
    assert {one.name for one in everything.rules} == {"SQL", "more"}
    assert everything.settings.lock_duration == 7000
    assert made.subscription("topic.1", "new").rules == (DEFAULT_RULE,)
    assert len(made.subscription("topic.1", "subscription.1").rules) == 2


def test_rules_of_the_file_take_the_place_of_others() -> None:
    made = broker()
    apply(made, parse_config(rule(**SQL)))
    made.create_rule("topic.1", "sub", Rule("extra", SqlFilter("1=1")))
    other = {"FilterType": "Sql", "SqlFilter": {"SqlExpression": "2=2"}}
    apply(made, parse_config(rule(**other)))
    assert made.subscription("topic.1", "sub").rules == (Rule("rule", SqlFilter("2=2")),)


def test_what_an_entity_has_for_life_is_not_changed() -> None:
    made = broker()
    apply(made, parse_config(queue(RequiresSession=False)))
    with pytest.raises(BrokerError):
        apply(made, parse_config(queue(RequiresSession=True)))
