"""Every row of the version's table, and that there are no others; and whose version counts."""

from dataclasses import replace
from itertools import product

import pytest

from lucius_artifacts.decisions import versions as decide
from lucius_artifacts.decisions.versions import Succession
from lucius_artifacts.errors import Gone, Refused
from lucius_artifacts.model import Entry, Version
from lucius_artifacts.ports.policy import Allow, Quarantine
from lucius_artifacts.states import VERSION_TRANSITIONS, VersionCommand, VersionState
from tests.artifacts.rows import DIGEST, HOUR, NOW, produced, version

SUSPECT = Quarantine("holds a virus")
OTHER = (Entry("answer.json", "0" * 64, 1),)


def _obeyed(row: Version, command: VersionCommand) -> Version:
    match command:
        case VersionCommand.PUBLISH_VERSION:
            return decide.publish_version(row, [], Allow(), NOW)
        case VersionCommand.TOMBSTONE_VERSION:
            return decide.tombstone_version(row, True, HOUR, "wrong", NOW)
        case VersionCommand.RESTORE_VERSION:
            return decide.restore_version(row, [], Allow(), NOW)


def test_draft_publish_version_with_all_blobs_and_the_policy_is_published_for_ever() -> None:
    row = decide.publish_version(version(), [], Allow(), NOW)
    assert (row.state, row.published_at, row.retained_until) == (VersionState.PUBLISHED, NOW, None)


def test_draft_publish_version_with_a_missing_blob_is_refused() -> None:
    with pytest.raises(Gone, match=DIGEST):
        decide.publish_version(version(), [DIGEST], Allow(), NOW)


def test_draft_publish_version_that_the_policy_quarantines_stays_a_draft_with_the_reason() -> None:
    row = decide.publish_version(version(), [], SUSPECT, NOW)
    assert (row.state, row.reason) == (VersionState.DRAFT, "holds a virus")
    assert row.retained_until == version().retained_until


def test_published_tombstone_version_with_role_and_retention_is_tombstoned() -> None:
    row = decide.tombstone_version(version(VersionState.PUBLISHED), True, HOUR, "wrong", NOW)
    assert (row.state, row.tombstoned_at) == (VersionState.TOMBSTONED, NOW)
    assert (row.retained_until, row.reason) == (NOW + HOUR, "wrong")


def test_tombstone_version_without_the_role_is_refused() -> None:
    with pytest.raises(Refused, match="needs another role"):
        decide.tombstone_version(version(VersionState.PUBLISHED), False, HOUR, "wrong", NOW)


def test_tombstone_version_without_a_retention_is_refused() -> None:
    with pytest.raises(Refused, match="needs a retention"):
        decide.tombstone_version(version(VersionState.PUBLISHED), True, None, "wrong", NOW)


def test_tombstoned_restore_version_within_its_retention_is_published() -> None:
    row = decide.restore_version(version(VersionState.TOMBSTONED), [], Allow(), NOW)
    assert (row.state, row.retained_until, row.reason) == (VersionState.PUBLISHED, None, None)


def test_restore_version_is_refused_once_the_retention_is_over() -> None:
    late = version(VersionState.TOMBSTONED, retained_until=NOW)
    with pytest.raises(Refused, match="was retained until"):
        decide.restore_version(late, [], Allow(), NOW)


def test_restore_version_is_refused_by_the_policy() -> None:
    with pytest.raises(Refused, match="quarantine: holds a virus"):
        decide.restore_version(version(VersionState.TOMBSTONED), [], SUSPECT, NOW)


def test_restore_version_with_a_missing_blob_is_refused() -> None:
    with pytest.raises(Gone):
        decide.restore_version(version(VersionState.TOMBSTONED), [DIGEST], Allow(), NOW)


@pytest.mark.parametrize(
    ("state", "command"),
    [
        (state, command)
        for state, command in product(VersionState, VersionCommand)
        if not any(row.source is state and row.trigger is command for row in VERSION_TRANSITIONS)
    ],
)
def test_whatever_is_in_no_row_is_refused_with_its_reason(
    state: VersionState, command: VersionCommand
) -> None:
    with pytest.raises(Refused, match=f"answers/v1 is {state}: {command} is possible when it is"):
        _obeyed(version(state), command)


def test_no_command_changes_the_content() -> None:
    for row in VERSION_TRANSITIONS:
        before = version(row.source)
        assert _obeyed(before, row.trigger).entries == before.entries


def test_the_first_publication_of_a_job_is_new() -> None:
    assert decide.succession(None, produced(1)) is Succession.FIRST


def test_the_same_content_again_is_the_same_version() -> None:
    assert decide.succession(produced(1), produced(1)) is Succession.AGAIN
    assert decide.succession(produced(1), produced(2)) is Succession.AGAIN


def of_step(step_id: str, version: Version) -> Version:
    producer = version.producer
    assert producer is not None
    return replace(
        version, producer=replace(producer, fence=replace(producer.fence, step_id=step_id))
    )


@pytest.mark.parametrize(
    "later",
    [
        produced(2, entries=OTHER),
        produced(1, 2, entries=OTHER),
        of_step("step_02", produced(1, entries=OTHER)),
    ],
)
def test_other_content_of_a_later_run_replaces(later: Version) -> None:
    assert decide.succession(produced(1), later) is Succession.REPLACES


@pytest.mark.parametrize("entries", [OTHER, produced(1).entries])
def test_a_lower_fence_is_refused_whatever_it_brings(entries: tuple[Entry, ...]) -> None:
    earlier = [produced(1, 2, entries=entries), produced(2, 1, entries=entries)]
    for run in (*earlier, of_step("step_00", produced(3, entries=entries))):
        with pytest.raises(Refused, match="is outdated"):
            decide.succession(produced(2, 2), run)


def test_one_run_cannot_publish_two_contents() -> None:
    with pytest.raises(Refused, match="by the same run with other content"):
        decide.succession(produced(1), produced(1, entries=OTHER))


def test_what_an_operator_withdrew_comes_back_by_a_later_run_alone() -> None:
    withdrawn = replace(produced(1), state=VersionState.TOMBSTONED)
    with pytest.raises(Refused, match="was tombstoned"):
        decide.succession(withdrawn, produced(1))
    assert decide.succession(withdrawn, produced(2)) is Succession.FIRST
