"""What is sent, what is refused, and which subscriptions get a copy."""

import pytest

from servicebus_emulator.broker import (
    BrokerError,
    EntityDisabled,
    EntityNotFound,
    InvalidArgument,
    MessageTooLarge,
    NotAllowed,
    QueueSettings,
    QuotaExceeded,
)
from servicebus_emulator.rules import CorrelationFilter, FalseFilter, Rule, SqlFilter, TrueFilter
from tests.emulator.broker.world import Note, World, ids, notes, of_service, reason, take_one

TOO_LARGE = 262_145
WINDOW = 600_000


def test_every_subscription_with_a_rule_that_matches_has_a_copy_of_its_own(world: World) -> None:
    world.topic()
    ocr = world.subscription("ocr", of_service("ocr"))
    sis = world.subscription("sis", of_service("sis"))
    audit = world.subscription("audit")
    world.send(Note("m1", {"service": "ocr"}), Note("m2", {"service": "sis"}), to="t")
    assert ids(ocr.take(10)) == ["m1"]
    (only,) = sis.take(10)
    assert (ids([only]), only.sequence_number) == (["m2"], 1)
    assert ids(audit.take(10)) == ["m1", "m2"]


def test_several_rules_that_match_give_one_copy(world: World) -> None:
    world.topic()
    rules = of_service("ocr"), Rule("all", TrueFilter()), Rule("none", FalseFilter())
    source = world.subscription("s", *rules)
    world.send(Note("m1", {"service": "ocr"}), to="t")
    assert ids(source.take(10)) == ["m1"]


def test_a_subscription_without_rules_gets_nothing(world: World) -> None:
    world.topic()
    source = world.subscription("s")
    world.broker.delete_rule("t", "s", "$default")
    world.send(Note("m1"), to="t")
    assert source.take(10) == []


def test_rules_hold_for_what_is_sent_from_then_on(world: World) -> None:
    world.topic()
    source = world.subscription("s", of_service("ocr"))
    world.broker.create_rule("t", "s", of_session := Rule("r", CorrelationFilter(session_id="x")))
    world.send(Note("m1", session_id="x"), Note("m2", {"service": "ocr"}), to="t")
    world.broker.update_rule("t", "s", Rule("SERVICE", FalseFilter()))
    world.send(Note("m3", {"service": "ocr"}), Note("m4", session_id="x"), to="t")
    assert ids(source.take(10)) == ["m1", "m2", "m4"]
    assert of_session in world.broker.rules("t", "s")


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_filter_that_fails_takes_nothing_from_the_other_subscriptions(
    world: World, is_kept: bool
) -> None:
    world.topic()
    failing = Rule("failing", SqlFilter("1 / zero = 1"))
    source = world.subscription("s", failing, dead_letter_on_filter_error=is_kept)
    other = world.subscription("other")
    world.send(Note("m1", {"zero": 0}), to="t")
    assert source.take(10) == []
    assert [reason(one) for one in world.dead(source).take(10)] == ["FilterException"] * is_kept
    assert ids(other.take(10)) == ["m1"]


def test_a_message_that_nobody_wants_is_gone(world: World) -> None:
    world.topic()
    world.send(Note("m1"), to="t")
    assert world.subscription("s").take(1) == []


REFUSED: list[tuple[Note, type[BrokerError]]] = [
    (Note("bad", size=TOO_LARGE), MessageTooLarge),
    (Note("m" * 129), InvalidArgument),
    (Note("bad", session_id="s" * 129), InvalidArgument),
    (Note("bad", partition_key="\N{PAGE FACING UP}" * 65), InvalidArgument),
    (Note("bad", session_id="s", partition_key="p"), InvalidArgument),
]


@pytest.mark.parametrize(("refused", "error"), REFUSED)
def test_a_batch_goes_out_as_a_whole_or_not_at_all(
    world: World, refused: Note, error: type[BrokerError]
) -> None:
    queue = world.queue()
    with pytest.raises(error):
        world.send(Note("m1"), refused, Note("m2"))
    assert queue.take(10) == []
    assert world.broker.counts("q").size_bytes == 0


def test_ids_may_be_as_long_as_allowed(world: World) -> None:
    queue = world.queue()
    paper = "\N{PAGE FACING UP}" * 64
    world.send(Note("m" * 128, session_id=paper, partition_key=paper, size=TOO_LARGE - 1))
    assert len(queue.take(1)) == 1


def test_an_entity_may_have_a_limit_of_its_own(world: World) -> None:
    world.queue(max_message_bytes=1_000_000)
    world.topic(max_message_bytes=10)
    world.send(Note("m1", size=TOO_LARGE))
    with pytest.raises(MessageTooLarge):
        world.send(Note("m1", size=11), to="t")
    assert world.broker.message_limit("q") == 1_000_000
    assert world.broker.message_limit("T") == 10


def test_a_full_entity_takes_no_more(world: World) -> None:
    queue = world.queue(max_size_bytes=250)
    world.send(*notes(2))
    with pytest.raises(QuotaExceeded):
        world.send(Note("m3"))
    queue.take(1, keep=False)
    world.send(Note("m3"))


def test_a_topic_is_as_full_as_its_subscriptions_are_together(world: World) -> None:
    world.topic(max_size_bytes=250)
    first, second = world.subscription("a"), world.subscription("b")
    world.send(Note("m1"), to="t")
    with pytest.raises(QuotaExceeded):
        world.send(Note("m2"), to="t")
    first.take(1, keep=False)
    second.take(1, keep=False)
    world.send(Note("m2"), to="t")


def test_addresses_are_found_whatever_their_letter_case(world: World) -> None:
    world.topic("Lane")
    world.subscription("Ocr", topic="Lane")
    world.send(Note("m1"), to="LANE")
    source = world.broker.source("lane/subscriptions/OCR")
    assert source.path == "Lane/Subscriptions/Ocr"
    assert ids(source.take(1)) == ["m1"]


@pytest.mark.parametrize("address", ["nowhere", "t/Subscriptions/none", "q/$deadletter"])
def test_an_address_that_does_not_exist_is_an_error(world: World, address: str) -> None:
    world.queue()
    world.topic()
    with pytest.raises(EntityNotFound):
        world.broker.send(address, [])
    with pytest.raises(EntityNotFound):
        world.broker.source(address)


@pytest.mark.parametrize("address", ["t/subscriptions/s", "q/$DeadLetterQueue"])
def test_nothing_is_sent_where_messages_are_only_received(world: World, address: str) -> None:
    world.queue()
    world.topic()
    world.subscription("s")
    with pytest.raises(NotAllowed):
        world.broker.send(address, [Note("m1")])


def test_nothing_is_received_from_a_topic(world: World) -> None:
    world.topic()
    with pytest.raises(EntityNotFound):
        world.broker.source("t")


def test_a_queue_that_takes_sessions_refuses_a_message_without_one(world: World) -> None:
    world.queue(requires_session=True)
    with pytest.raises(NotAllowed):
        world.send(Note("m1", session_id="s"), Note("m2"))
    assert world.broker.counts("q").active == 0


def test_a_subscription_that_takes_sessions_has_a_message_without_one_among_its_dead(
    world: World,
) -> None:
    world.topic()
    source = world.subscription("s", requires_session=True)
    world.send(Note("m1"), to="t")
    dead = take_one(world.dead(source))
    assert (reason(dead), dead.delivery_count) == ("Session ID is null", 0)


@pytest.mark.parametrize("status", ["Disabled", "SendDisabled"])
def test_a_disabled_entity_takes_nothing(world: World, status: str) -> None:
    world.queue(status=status)
    with pytest.raises(EntityDisabled):
        world.send(Note("m1"))


@pytest.mark.parametrize("status", ["Disabled", "ReceiveDisabled"])
def test_a_disabled_entity_gives_nothing(world: World, status: str) -> None:
    queue = world.queue()
    world.send(*notes(2))
    token = take_one(queue).token
    world.broker.update_queue("q", QueueSettings(status=status))
    with pytest.raises(EntityDisabled):
        queue.take(1)
    with pytest.raises(EntityDisabled):
        queue.take_deferred([1])
    queue.release(token)
    world.broker.update_queue("q", QueueSettings())
    assert ids(queue.take(10)) == ["m1", "m2"]


def test_an_id_that_was_seen_is_a_duplicate_until_the_window_is_over(world: World) -> None:
    queue = world.queue(requires_duplicate_detection=True)
    world.send(Note("m1"), Note("m1"), Note("m2"), Note(), Note())
    assert ids(queue.take(10, keep=False)) == ["m1", "m2", None, None]
    world.pass_time(WINDOW - 1)
    world.send(Note("m1"))
    assert queue.take(10) == []
    world.pass_time(1)
    world.send(Note("m1"))
    assert ids(queue.take(10)) == ["m1"]


def test_a_duplicate_does_not_make_the_window_longer(world: World) -> None:
    queue = world.queue(requires_duplicate_detection=True, duplicate_window=1000)
    for _ in range(5):
        world.send(Note("m1"))
        world.pass_time(500)
    assert len(queue.take(10)) == 3


def test_a_topic_knows_duplicates_for_all_its_subscriptions(world: World) -> None:
    world.topic(requires_duplicate_detection=True)
    world.send(Note("m1"), to="t")
    source = world.subscription("s")
    world.send(Note("m1"), to="t")
    assert source.take(1) == []


def test_what_is_refused_is_not_remembered_as_seen(world: World) -> None:
    queue = world.queue(requires_duplicate_detection=True)
    with pytest.raises(MessageTooLarge):
        world.send(Note("m1"), Note("m2", size=TOO_LARGE))
    world.send(Note("m1"))
    assert ids(queue.take(10)) == ["m1"]
