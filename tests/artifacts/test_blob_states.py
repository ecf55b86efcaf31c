"""Every row of the blob's table, and that there are no others."""

from itertools import product

import pytest

from lucius_artifacts.decisions import blobs as decide
from lucius_artifacts.errors import ArtifactsError, Gone, Refused
from lucius_artifacts.model import Blob, RunPhase
from lucius_artifacts.states import BLOB_TRANSITIONS, BlobProcess, BlobState
from tests.artifacts.rows import HOUR, NOW, REFERENCE, blob, run

TOMBSTONED, ELIGIBLE = BlobState.TOMBSTONED, BlobState.ELIGIBLE_FOR_GC


def _obeyed(row: Blob, process: BlobProcess) -> Blob:
    match process:
        case BlobProcess.DELETE_REQUEST:
            return decide.delete_request(row, True, NOW, HOUR)
        case BlobProcess.RETENTION_ELAPSED:
            return decide.retention_elapsed(row, [], NOW)
        case BlobProcess.GC_SWEEP:
            return decide.gc_sweep(row, run(), [], NOW)
        case BlobProcess.GC_MARK:
            return decide.gc_mark(row, NOW)
        case BlobProcess.REVIVE:
            return decide.needed(row, NOW)


def test_live_delete_request_by_who_may_is_tombstoned_with_a_horizon() -> None:
    row = decide.delete_request(blob(), True, NOW, HOUR)
    assert (row.state, row.delete_after) == (TOMBSTONED, NOW + HOUR)


def test_live_delete_request_without_the_role_is_refused() -> None:
    with pytest.raises(Refused, match="needs another role"):
        decide.delete_request(blob(), False, NOW, HOUR)


def test_tombstoned_retention_elapsed_without_references_is_eligible() -> None:
    row = decide.retention_elapsed(blob(TOMBSTONED, delete_after=NOW), [], NOW)
    assert (row.state, row.eligible_at) == (ELIGIBLE, NOW)


def test_tombstoned_retention_elapsed_is_refused_before_the_horizon() -> None:
    with pytest.raises(Refused, match="is retained until"):
        decide.retention_elapsed(blob(TOMBSTONED, delete_after=NOW + HOUR), [], NOW)


def test_tombstoned_retention_elapsed_with_a_reference_is_refused() -> None:
    with pytest.raises(Refused, match="needed by version answers/v1"):
        decide.retention_elapsed(blob(TOMBSTONED), [REFERENCE], NOW)


def test_eligible_gc_sweep_of_what_was_not_marked_in_this_run_is_deleted() -> None:
    row = decide.gc_sweep(blob(ELIGIBLE, marked_by="gc_0"), run(), [], NOW)
    assert (row.state, row.deleted_at) == (BlobState.DELETED, NOW)


@pytest.mark.parametrize("phase", sorted(set(RunPhase) - {RunPhase.SWEEPING}))
def test_gc_sweep_without_a_complete_mark_phase_in_the_same_run_is_refused(phase: RunPhase) -> None:
    with pytest.raises(Refused, match="no complete mark phase"):
        decide.gc_sweep(blob(ELIGIBLE), run(phase), [], NOW)


def test_gc_sweep_of_what_was_marked_in_this_run_is_refused() -> None:
    with pytest.raises(Refused, match="was marked in run gc_1"):
        decide.gc_sweep(blob(ELIGIBLE, marked_by="gc_1"), run(), [], NOW)


def test_gc_sweep_of_what_became_eligible_after_the_run_began_is_refused() -> None:
    with pytest.raises(Refused, match="was not eligible when run gc_1 began"):
        decide.gc_sweep(blob(ELIGIBLE), run(started_at=NOW - HOUR), [], NOW)


def test_gc_sweep_of_what_is_needed_since_the_mark_phase_is_refused() -> None:
    with pytest.raises(Refused, match="needed by version answers/v1"):
        decide.gc_sweep(blob(ELIGIBLE), run(), [REFERENCE], NOW)


def test_eligible_gc_mark_of_what_is_reachable_is_live_and_no_candidate() -> None:
    row = decide.gc_mark(blob(ELIGIBLE), NOW)
    assert (row.state, row.delete_after, row.eligible_at) == (BlobState.LIVE, None, None)


@pytest.mark.parametrize("state", [BlobState.LIVE, TOMBSTONED, ELIGIBLE])
def test_what_is_needed_again_before_it_was_deleted_is_live(state: BlobState) -> None:
    row = decide.needed(blob(state), NOW)
    assert (row.state, row.needed_at, row.delete_after) == (BlobState.LIVE, NOW, None)


def test_what_was_deleted_cannot_be_revived() -> None:
    with pytest.raises(Gone):
        decide.needed(blob(BlobState.DELETED), NOW)


def test_a_slow_clock_does_not_make_a_blob_older() -> None:
    assert decide.needed(blob(needed_at=NOW), NOW - HOUR).needed_at == NOW


@pytest.mark.parametrize(
    ("state", "process"),
    [
        (state, process)
        for state, process in product(BlobState, BlobProcess)
        if not any(row.source is state and row.trigger is process for row in BLOB_TRANSITIONS)
        and (state, process) != (BlobState.LIVE, BlobProcess.REVIVE)  # is alive already
    ],
)
def test_whatever_is_in_no_row_is_refused(state: BlobState, process: BlobProcess) -> None:
    with pytest.raises(ArtifactsError):
        _obeyed(blob(state), process)


@pytest.mark.parametrize("row", BLOB_TRANSITIONS)
def test_every_row_can_happen(row: object) -> None:
    assert isinstance(row, type(BLOB_TRANSITIONS[0]))
    assert _obeyed(blob(row.source), row.trigger).state is row.target
