"""A broker that comes back from its journal."""

from collections.abc import Iterable
from itertools import count
from pathlib import Path

from servicebus_emulator.broker import (
    Abandon,
    Broker,
    DeadLetter,
    Defer,
    QueueSettings,
    Record,
    SubscriptionSettings,
    TopicSettings,
)
from servicebus_emulator.journal import Journal
from servicebus_emulator.messages import Message
from servicebus_emulator.rules import Rule, SqlFilter
from tests.emulator.journal.samples import comparable


def broker_of(journal: Journal) -> Broker:
    numbers = count(1)
    broker = Broker(lambda: 1000, lambda: next(numbers).to_bytes(16, "big"), journal.record)
    broker.restore(journal.load())
    return broker


def state(records: Iterable[Record]) -> list[tuple[object, ...]]:
    return [comparable(record) for record in records]


def use(broker: Broker) -> None:
    broker.create_queue("q", QueueSettings(requires_duplicate_detection=True))
    broker.create_topic("t", TopicSettings())
    broker.create_subscription("t", "all", SubscriptionSettings(requires_session=True))
    rule = Rule("some", SqlFilter("color = @c", {"@c": "red"}))
    broker.create_subscription("t", "some", SubscriptionSettings(), [rule])
    for number in range(6):
        color = "red" if number % 2 else "blue"
        properties = {"color": color}
        message = Message.build(b"x", message_id=str(number), session_id="s", properties=properties)
        broker.send("t", [message])
        broker.send("q", [message])
    broker.schedule("q", [Message.build(b"later", message_id="later", scheduled_at=5000)])
    first, second, third, fourth = broker.source("q").take(4)
    broker.source("q").settle(first.token, Abandon({"tried": 1}))
    broker.source("q").settle(second.token, Defer())
    broker.source("q").settle(third.token, DeadLetter("odd", "very"))
    broker.source("q").release(fourth.token)
    session = broker.source("t/Subscriptions/all").accept_session("s")
    assert session is not None
    session.set_state(b"\x00state")
    broker.delete_rule("t", "some", "some")


def test_a_broker_comes_back_from_what_was_recorded(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    broker = broker_of(journal)
    use(broker)
    before = state(broker.snapshot())
    journal.close()
    again = Journal(tmp_path)
    assert state(broker_of(again).snapshot()) == before
    again.close()


def test_a_broker_comes_back_from_a_compacted_journal(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    broker = broker_of(journal)
    use(broker)
    journal.compact(broker.snapshot())
    broker.create_queue("after", QueueSettings())
    before = state(broker.snapshot())
    journal.close()
    again = Journal(tmp_path)
    assert state(broker_of(again).snapshot()) == before
    again.close()
