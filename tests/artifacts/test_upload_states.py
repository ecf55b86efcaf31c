"""Every row of the upload's table, and that there are no others."""

from dataclasses import replace
from itertools import product

import pytest

from lucius_artifacts.decisions import uploads as decide
from lucius_artifacts.decisions.uploads import Measured
from lucius_artifacts.errors import Refused
from lucius_artifacts.model import Upload
from lucius_artifacts.states import (
    OPEN_UPLOADS,
    UPLOAD_TRANSITIONS,
    UploadCommand,
    UploadState,
)
from tests.artifacts.rows import CONTENT, DIGEST, HOUR, NOW, blob, upload

ALL_PARTS = {1: 4, 2: 4, 3: 2}
VERIFIED = Measured(DIGEST, len(CONTENT))


def _obeyed(row: Upload, command: UploadCommand) -> Upload:
    """The command with all its guards fulfilled."""
    match command:
        case UploadCommand.START_PARTS_UPLOAD:
            return decide.start_parts_upload(row, NOW)
        case UploadCommand.FAST_PATH_DEDUPE:
            return decide.fast_path_dedupe(row, blob(), True, NOW)
        case UploadCommand.COMPLETE_PARTS:
            return decide.complete_parts(row, ALL_PARTS, NOW, HOUR)
        case UploadCommand.COMMIT_UPLOAD:
            return decide.commit_upload(row, VERIFIED, NOW)
        case UploadCommand.ABORT_UPLOAD:
            return decide.abort_upload(row, "changed my mind", NOW)


def test_initiated_start_parts_upload_while_valid_and_not_expired_is_parts_uploading() -> None:
    assert decide.start_parts_upload(upload(), NOW).state is UploadState.PARTS_UPLOADING


def test_initiated_start_parts_upload_is_refused_once_expired() -> None:
    with pytest.raises(Refused, match="expired: begin a new one"):
        decide.start_parts_upload(upload(expires_at=NOW), NOW)


def test_initiated_fast_path_dedupe_of_an_existing_digest_is_committed() -> None:
    ended = decide.fast_path_dedupe(upload(), blob(), True, NOW)
    assert (ended.state, ended.ended_at) == (UploadState.COMMITTED, NOW)


def test_the_fast_path_needs_a_proof() -> None:
    with pytest.raises(Refused, match="no such content here, or the proof does not hold"):
        decide.fast_path_dedupe(upload(), blob(), False, NOW)


@pytest.mark.parametrize("other", [blob(length=11), blob(digest="0" * 64)])
def test_the_fast_path_needs_the_recorded_digest_and_length(other: object) -> None:
    with pytest.raises(Refused, match="no such content here"):
        decide.fast_path_dedupe(upload(), other, True, NOW)  # type: ignore[arg-type]


def test_the_fast_path_is_refused_once_expired() -> None:
    with pytest.raises(Refused, match="expired"):
        decide.fast_path_dedupe(upload(expires_at=NOW), blob(), True, NOW)


def test_parts_uploading_complete_parts_with_all_parts_is_pending_commit() -> None:
    row = upload(UploadState.PARTS_UPLOADING)
    moved = decide.complete_parts(row, ALL_PARTS, NOW, HOUR * 2)
    assert (moved.state, moved.expires_at) == (UploadState.PENDING_COMMIT, NOW + HOUR * 2)


@pytest.mark.parametrize("sizes", [{}, {1: 4, 2: 4}, {1: 4, 2: 4, 3: 3}, {1: 2, 2: 4, 3: 4}])
def test_complete_parts_is_refused_while_a_part_is_missing_or_of_another_size(
    sizes: dict[int, int],
) -> None:
    with pytest.raises(Refused, match="of 3 parts are missing or have another size: bring"):
        decide.complete_parts(upload(UploadState.PARTS_UPLOADING), sizes, NOW, HOUR)


def test_complete_parts_names_the_first_missing_ones() -> None:
    row = upload(UploadState.PARTS_UPLOADING, part_size=1, length=20)
    with pytest.raises(Refused, match=r"bring 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, \.\.\., then"):
        decide.complete_parts(row, {}, NOW, HOUR)


def test_complete_parts_of_an_empty_content_needs_none() -> None:
    row = upload(UploadState.PARTS_UPLOADING, length=0)
    assert decide.complete_parts(row, {}, NOW, HOUR).state is UploadState.PENDING_COMMIT


def test_complete_parts_is_refused_once_expired() -> None:
    with pytest.raises(Refused, match="expired"):
        decide.complete_parts(
            upload(UploadState.PARTS_UPLOADING, expires_at=NOW), ALL_PARTS, NOW, HOUR
        )


def test_pending_commit_commit_upload_with_verified_digest_and_length_is_committed() -> None:
    ended = decide.commit_upload(upload(UploadState.PENDING_COMMIT), VERIFIED, NOW)
    assert (ended.state, ended.ended_at) == (UploadState.COMMITTED, NOW)


@pytest.mark.parametrize(
    ("measured", "reason"),
    [
        (Measured("0" * 64, len(CONTENT)), f"has the digest {'0' * 64}, not {DIGEST}"),
        (Measured(DIGEST, 9), "has 9 bytes, not 10"),
    ],
)
def test_pending_commit_commit_upload_with_a_mismatch_is_aborted(
    measured: Measured, reason: str
) -> None:
    ended = decide.commit_upload(upload(UploadState.PENDING_COMMIT), measured, NOW)
    assert (ended.state, ended.ended_at) == (UploadState.ABORTED, NOW)
    assert reason in str(ended.reason)


@pytest.mark.parametrize("state", sorted(OPEN_UPLOADS))
def test_abort_upload_by_the_client_is_aborted_from_every_open_state(state: UploadState) -> None:
    ended = decide.abort_upload(upload(state), "changed my mind", NOW)
    assert (ended.state, ended.reason) == (UploadState.ABORTED, "changed my mind")


@pytest.mark.parametrize("state", sorted(OPEN_UPLOADS))
def test_abort_upload_by_expiration_is_aborted_from_every_open_state(state: UploadState) -> None:
    ended = decide.expire_upload(upload(state, expires_at=NOW), NOW)
    assert (ended.state, ended.reason) == (UploadState.ABORTED, decide.EXPIRED)


def test_a_session_does_not_expire_before_its_time() -> None:
    with pytest.raises(Refused, match="has not expired"):
        decide.expire_upload(upload(), NOW)


@pytest.mark.parametrize(
    ("state", "command"),
    [
        (state, command)
        for state, command in product(UploadState, UploadCommand)
        if not any(row.source is state and row.trigger is command for row in UPLOAD_TRANSITIONS)
    ],
)
def test_whatever_is_in_no_row_is_refused_with_its_reason(
    state: UploadState, command: UploadCommand
) -> None:
    with pytest.raises(Refused, match=f"upload up_1 is {state}: {command} is possible when it is"):
        _obeyed(upload(state), command)


@pytest.mark.parametrize("row", UPLOAD_TRANSITIONS)
def test_every_row_can_happen(row: object) -> None:
    assert isinstance(row, type(UPLOAD_TRANSITIONS[0]))
    if row.target is UploadState.ABORTED and row.trigger is UploadCommand.COMMIT_UPLOAD:
        ended = decide.commit_upload(upload(row.source), Measured("0" * 64, 1), NOW)
    else:
        ended = _obeyed(upload(row.source), row.trigger)
    assert ended.state is row.target


def test_parts_are_of_equal_size_but_the_last() -> None:
    row = upload()
    assert [row.size_of_part(number) for number in (1, 2, 3)] == [4, 4, 2]
    assert replace(row, length=8).part_count == 2
