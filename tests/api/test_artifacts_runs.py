"""Collections that an operator asks for."""

from datetime import timedelta

import pytest

from lucius_artifacts.collection.steps import begin_run
from lucius_orchestrator.api.artifacts import runs
from lucius_orchestrator.api.artifacts.shapes import CandidateView, ReportView
from tests.api.artifact_stage import ArtifactStage
from tests.api.stage import code

CONTENT = b"ten bytes!"
DAY = timedelta(days=1)


async def test_what_nobody_needs_goes_step_by_step_and_is_explained_before(
    artifacts: ArtifactStage,
) -> None:
    uri = await artifacts.uploaded(CONTENT)
    assert (await artifacts.run(dry_run=True)).json()["candidates"] == []
    artifacts.plane.later(2 * DAY)
    answer = (await artifacts.run(dry_run=True)).json()
    assert (answer["report"], answer["more"]) == (None, False)
    (candidate,) = answer["candidates"]
    assert candidate.keys() == set(CandidateView.model_fields)
    assert (candidate["subject"], candidate["state"], candidate["goes"]) == (uri, "live", True)
    report = (await artifacts.run()).json()["report"]
    assert report.keys() == set(ReportView.model_fields)
    assert (report["tombstoned"], report["deleted"]) == (1, 0)
    (candidate,) = (await artifacts.run(dry_run=True)).json()["candidates"]
    assert (candidate["state"], candidate["goes"]) == ("tombstoned", False)
    artifacts.plane.later(8 * DAY)
    deleted = 0
    for _ in range(2):
        artifacts.plane.later(DAY)
        deleted += (await artifacts.run()).json()["report"]["deleted"]
    assert deleted == 1
    assert code(await artifacts.located(uri))[0] == 404
    assert artifacts.told.count("lucius_artifact_gc_deleted_bytes_total") == len(CONTENT)
    assert artifacts.told.count("lucius_artifact_gc_runs_total", outcome="done") == 3


async def test_one_collection_runs_at_a_time(artifacts: ArtifactStage) -> None:
    now = artifacts.plane.clock()
    await artifacts.rows.change(lambda rows: begin_run(rows, "gc_other", now, DAY))
    answer = await artifacts.run()
    assert code(answer) == (409, "STATE_CONFLICT")
    assert "gc_other" in answer.json()["detail"]
    assert artifacts.told.count("lucius_artifact_gc_runs_total", outcome="busy") == 1


async def test_there_may_be_more_candidates_than_are_shown(
    artifacts: ArtifactStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "MOST_CANDIDATES", 2)
    for content in (b"a", b"b", b"c"):
        await artifacts.uploaded(content)
    artifacts.plane.later(2 * DAY)
    answer = (await artifacts.run(dry_run=True)).json()
    assert (len(answer["candidates"]), answer["more"]) == (2, True)
