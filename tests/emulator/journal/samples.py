"""Records of every kind."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from servicebus_emulator.broker.records import (
    Changed,
    Enqueued,
    IdSeen,
    NumbersUsed,
    QueueDeleted,
    QueuePut,
    Record,
    Removed,
    RuleDeleted,
    RulePut,
    SessionStateSet,
    SubscriptionDeleted,
    SubscriptionPut,
    TopicDeleted,
    TopicPut,
)
from servicebus_emulator.broker.settings import QueueSettings, SubscriptionSettings, TopicSettings
from servicebus_emulator.messages import Message
from servicebus_emulator.rules import (
    CorrelationFilter,
    FalseFilter,
    Filter,
    Rule,
    SqlFilter,
    TrueFilter,
)

PATH = "lane/Subscriptions/ocr"
MESSAGE = Message.build(b"body", message_id="m", session_id="s", properties={"n": 1, "t": "é"})
VALUES: dict[str, object] = {
    "text": "é\ud800\0\"'",
    "whole": 2**62,
    "part": 2.0,
    "yes": True,
    "none": None,
    "bytes": b"\x00\xff",
    "uuid": UUID(int=5),
    "time": datetime(2024, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
    "duration": timedelta(days=1, microseconds=1),
    "message": "not a tag",
}
FILTERS: list[Filter] = [
    TrueFilter(),
    FalseFilter(),
    CorrelationFilter(VALUES, subject="order", message_id=""),
    SqlFilter("color = @text AND EXISTS([a b])", {f"@{name}": VALUES[name] for name in VALUES}),
]
RECORDS: list[Record] = [
    QueuePut("q", QueueSettings(lock_duration=5000, forward_to="other", default_ttl=1), 1, 2),
    QueueDeleted("q"),
    TopicPut("lane", TopicSettings(user_metadata='{"message": 3}'), 1, 2),
    TopicDeleted("lane"),
    SubscriptionPut("lane", "ocr", SubscriptionSettings(requires_session=True), 1, 2),
    SubscriptionDeleted("lane", "ocr"),
    *(RulePut("lane", "ocr", Rule(f"rule{n}", found)) for n, found in enumerate(FILTERS)),
    RuleDeleted("lane", "ocr", "$Default"),
    Enqueued(PATH, 1, MESSAGE, 1_700_000_000_000, None, 0, 0, None, None),
    Enqueued(PATH, 2, Message.build(b""), 5, 6, 3, 2, 7, "lane/Subscriptions/other"),
    Removed(PATH, 1),
    Changed(PATH, 2, 1, 4, None),
    Changed(PATH, 2, 1, 4, MESSAGE),
    SessionStateSet(PATH, "s", b"\x00state\xff", 9),
    SessionStateSet(PATH, "\ud800", None, 9),
    IdSeen("lane", "id", 99),
    NumbersUsed(PATH, 2),
]


def comparable(record: Record) -> tuple[object, ...]:
    """A message is what it stores."""
    values = (value.stored() if isinstance(value, Message) else value for value in record)
    return (type(record), *values)
