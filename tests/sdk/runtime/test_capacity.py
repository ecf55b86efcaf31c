"""What an instance states of itself in its replies."""

from collections.abc import Sequence
from datetime import timedelta

from lucius_contract.messages import Ack, Capacity, Heartbeat, Reply, Result
from lucius_sdk.idempotency_store import StepKey
from lucius_sdk.replies.answers import Answer, ReplyUnavailable, Verdict
from lucius_sdk.testing.replies import APPLIED
from tests.sdk.runtime.rig import Rig

LOCK = 60


def stated(replies: Sequence[Reply]) -> list[Capacity]:
    found = []
    for reply in replies:
        assert not isinstance(reply, Result)
        assert reply.capacity is not None
        found.append(reply.capacity)
    return found


async def test_every_ack_and_heartbeat_states_the_instance_and_its_slots(rig: Rig) -> None:
    rig.replies.answering = lambda _: Answer(
        Verdict.APPLIED, rig.clock.now() + timedelta(minutes=15)
    )
    rig.workshop.hold()
    await rig.start(concurrency=6)
    for number in range(2):
        await rig.send(rig.directive(f"job_{number}"))
    await rig.until(lambda: rig.workshop.now == 2)
    await rig.advance(11 * 60, step=10)
    rig.workshop.let_go()
    for result in await rig.results(2):
        assert "capacity" not in result.to_json()
    replies = [reply for reply in rig.replies.replies if not isinstance(reply, Result)]
    assert {type(reply) for reply in replies} == {Ack, Heartbeat}
    found = stated(replies)
    assert {each.slots for each in found} == {6}
    assert len({each.instance_id for each in found}) == 1


async def test_it_is_stated_by_the_bus_too(rig: Rig) -> None:
    await rig.start(concurrency=3)
    await rig.send(directive := rig.bus_directive())
    ack, _ = await rig.bus_replies(directive, 2)
    assert [each.slots for each in stated([ack])] == [3]


async def test_the_instance_is_the_one_that_claims_in_the_store(rig: Rig) -> None:
    rig.workshop.hold()
    await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    stored = await rig.store.read(StepKey("job_1", "step_01"))
    assert stored is not None
    assert stated(rig.replies.acks)[0].instance_id == stored.record.owner
    rig.workshop.let_go()
    await rig.results()


async def test_an_instance_has_a_new_id_at_every_start(rig: Rig) -> None:
    rig.workshop.hold()
    first = await rig.start(concurrency=2)
    await rig.send(rig.directive())
    await rig.until(lambda: rig.workshop.now == 1)
    await rig.kill(first)
    await rig.start(concurrency=5)
    await rig.advance(2 * LOCK)
    await rig.until(lambda: len(rig.replies.acks) == 2)
    before, after = stated(rig.replies.acks)
    assert before.instance_id != after.instance_id
    assert (before.slots, after.slots) == (2, 5)
    rig.workshop.let_go()
    await rig.results()


async def test_an_ack_that_is_sent_again_is_the_same_ack(rig: Rig) -> None:
    bodies: list[bytes] = []

    def answer(reply: Reply) -> Answer:
        if isinstance(reply, Ack):
            bodies.append(reply.to_bytes())
            if len(bodies) < 3:
                raise ReplyUnavailable("away")
        return APPLIED

    rig.replies.answering = answer
    rig.workshop.hold()
    await rig.start()
    await rig.send(rig.directive())
    await rig.until(lambda: len(bodies) == 1)
    await rig.advance(30)
    rig.workshop.let_go()
    await rig.results()
    assert len(bodies) == 3
    assert len(set(bodies)) == 1
