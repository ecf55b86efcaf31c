import pytest

from orchestrator_mock.misbehaving import Found, misbehave, mischief
from orchestrator_mock.recording import What
from orchestrator_mock.stage import Sending, Stage
from tests.runner.deadlines import seconds


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_sound_service_keeps_its_promises_under_a_seed(stage: Stage, seed: int) -> None:
    found = await misbehave(stage, Sending(), seed, jobs=12, within=seconds(60))
    assert not found.problems, found


@pytest.mark.check
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_service_of_the_sdk_keeps_its_promises_under_a_seed(
    sdk_stage: Stage, seed: int
) -> None:
    found = await misbehave(sdk_stage, Sending(), seed, jobs=12, within=60)
    assert not found.problems, found


def test_what_a_seed_does_depends_on_the_seed_and_the_job_alone() -> None:
    plans = [[mischief(seed, number, "job") for number in range(50)] for seed in (7, 7, 8)]
    assert plans[0] == plans[1]
    assert plans[0] != plans[2]


def test_seeds_do_every_kind_of_mischief() -> None:
    plans = [mischief(1, number, "job") for number in range(200)]
    assert {plan.copies for plan in plans} == {1, 2}
    assert any(plan.drops_bus for plan in plans)
    assert any(plan.loses_settlement for plan in plans)
    assert any(plan.late_copies for plan in plans)
    assert len({fault.name for plan in plans for fault in plan.reply_faults}) == 4
    assert {plan.storage_fault.name for plan in plans if plan.storage_fault} == {
        "storage-503",
        "storage-cut",
    }


async def test_a_result_that_differs_from_the_first_is_found(stage: Stage) -> None:
    """Said twice by somebody, with other words."""
    recording = stage.mock.recording
    issued = stage.send(Sending(tenant_id="sent-before"))
    recording.add(What.RESULT, job_id=issued.job_id, attempt_no=1, body={"status": "SUCCEEDED"})
    recording.add(What.RESULT, job_id=issued.job_id, attempt_no=1, body={"status": "FAILED_FINAL"})
    from orchestrator_mock.misbehaving import _problems

    assert any("different RESULTs of attempt 1" in text for text in _problems(stage.mock, issued))


def test_a_failure_tells_the_seed_that_repeats_it() -> None:
    found = Found(41, 20, ("job_1 ended as FAILED_FINAL, INTERNAL",))
    assert "seed 41 found 1 problems; it repeats them:" in str(found)
    assert "job_1 ended" in str(found)
