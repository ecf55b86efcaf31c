import pytest

from orchestrator_mock import Backlog
from orchestrator_mock.script import Player, ScriptError, ScriptFailed, read_script
from orchestrator_mock.stage import Stage
from tests.runner.deadlines import DEADLINE


async def test_a_script_sends_disturbs_and_expects(stage: Stage) -> None:
    script = read_script(
        [
            {"send": {"as": "first", "held": True}},
            {"expect": {"of": "first", "what": "ACK"}},
            {"fault": {"name": "callback-500", "of": "first", "types": ["RESULT"], "count": 2}},
            {"release": "first"},
            {"expect": {"of": "first", "what": "RESULT", "status": "SUCCEEDED"}},
            {"settled": "first"},
            {"duplicate": "first"},
            {"settled": "first"},
            {"expect": {"of": "first", "what": "read", "times": 1}},
            {"expect": {"of": "first", "what": "RESULT", "times": 3}},
        ]
    )
    await Player(stage).play(script)


async def test_a_script_tries_again_and_cancels(stage: Stage) -> None:
    script = read_script(
        [
            {"send": {"as": "it", "held": True, "heartbeat_seconds": 0.5}},
            {"expect": {"of": "it", "what": "read"}},
            {"cancel": "it"},
            {"expect": {"of": "it", "what": "HEARTBEAT"}},
            {"release": "it"},
            {"expect": {"of": "it", "what": "RESULT", "code": "CANCELLED"}},
            {"send": {"as": "other", "held": True}},
            {"expect": {"of": "other", "what": "read"}},
            {"expire": "other"},
            {"attempt": "other"},
            {"release": "other"},
            {"expect": {"of": "other", "what": "RESULT", "status": "SUCCEEDED"}},
        ]
    )
    await Player(stage).play(script)


async def test_what_was_expected_and_did_not_come_is_told_with_what_did(stage: Stage) -> None:
    script = read_script(
        [
            {"send": {"payload": {"unheard_of": 1}}},
            {"expect": {"of": "last", "what": "RESULT"}},
            {"expect": {"of": "last", "what": "RESULT", "status": "SUCCEEDED", "times": 1}},
        ]
    )
    with pytest.raises(ScriptFailed, match=r"step 3, expect: 0 came, not 1\. Seen: .*PAYLOAD_INV"):
        await Player(stage).play(script)


async def test_a_burst_reaches_the_service(stage: Stage) -> None:
    await Player(stage).play(read_script([{"burst": {"count": 12}}]))
    done = await stage.mock.recording.wait(
        lambda: stage.mock.waiting() == 0 or None, within=DEADLINE
    )
    assert done
    assert len(stage.jobs) == 12


async def test_a_burst_that_is_held_is_a_backlog(stage: Stage) -> None:
    player, recording = Player(stage), stage.mock.recording
    await player.play(read_script([{"burst": {"as": "many", "count": 7, "held": True}}]))
    assert await recording.wait(
        lambda: recording.backlog() == Backlog(7, 3, 3, 0) or None, within=DEADLINE
    )
    script = read_script(
        [
            {"send": {"as": "late"}},
            {"expect": {"of": "many", "what": "ACK", "at_most": 3}},
            {"expect": {"of": "late", "what": "ACK", "times": 0}},
            {"release": "many"},
            {"settled": "many"},
            {"settled": "late"},
            {"expect": {"of": "many", "what": "RESULT", "times": 7}},
        ]
    )
    await player.play(script)
    assert recording.backlog() == Backlog(8, 0, 0, 8)


async def test_more_than_may_come_is_told(stage: Stage) -> None:
    script = [
        {"burst": {"count": 2}},
        {"settled": "burst"},
        {"expect": {"of": "burst", "what": "ACK", "at_most": 1}},
    ]
    with pytest.raises(ScriptFailed, match=r"step 3, expect: 2 came, more than 1\. Seen: .*ACK"):
        await Player(stage).play(read_script(script))


async def test_a_fault_is_of_one_job(stage: Stage) -> None:
    script = [{"burst": {"count": 2}}, {"fault": {"name": "callback-500", "of": "burst"}}]
    with pytest.raises(ScriptError, match="step 2, fault: 'burst' means 2 jobs"):
        await Player(stage).play(read_script(script))


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ([{"send": {}, "release": "x"}], "exactly one of"),
        ([{"shout": 1}], "/0/shout"),
        ([{"send": {"kind": "valiant"}}], "/0/send/kind"),
        ({"send": {}}, "list"),
    ],
)
def test_a_script_that_cannot_be_read_says_where(script: object, told: str) -> None:
    with pytest.raises(ScriptError, match=told):
        read_script(script)


async def test_a_name_that_nothing_was_sent_as_is_told(stage: Stage) -> None:
    with pytest.raises(ScriptError, match="step 1, release: nothing was sent as 'first' before"):
        await Player(stage).play(read_script([{"release": "first"}]))


async def test_a_fault_that_does_not_exist_is_told_with_those_that_do(stage: Stage) -> None:
    with pytest.raises(ScriptError, match="no fault 'rain'; there are callback-down"):
        await Player(stage).play(read_script([{"fault": {"name": "rain"}}]))
