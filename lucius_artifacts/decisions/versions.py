"""What becomes of a version of an artifact."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from lucius_artifacts.decisions.moving import require_row
from lucius_artifacts.errors import Gone, Refused
from lucius_artifacts.model import Fence, Producer, Version
from lucius_artifacts.ports.policy import Allow, Quarantine
from lucius_artifacts.states import VERSION_TRANSITIONS, VersionCommand, VersionState


def publish_version(
    version: Version, missing: Sequence[str], verdict: Allow | Quarantine, now: datetime
) -> Version:
    """PUBLISHED, or the same draft with the reason of its quarantine. `missing` are digests that
    have no blob."""
    if isinstance(verdict, Quarantine):
        moved = _moved(version, VersionCommand.PUBLISH_VERSION, VersionState.DRAFT)
        return replace(moved, reason=verdict.reason)
    moved = _moved(version, VersionCommand.PUBLISH_VERSION, VersionState.PUBLISHED)
    _require_blobs(missing)
    return replace(moved, published_at=now, retained_until=None, reason=None)


def tombstone_version(
    version: Version, authorized: bool, retention: timedelta | None, reason: str, now: datetime
) -> Version:
    moved = _moved(version, VersionCommand.TOMBSTONE_VERSION, VersionState.TOMBSTONED)
    if not authorized:
        raise Refused(f"tombstoning {named(version)} needs another role")
    if retention is None:
        raise Refused(
            f"tombstoning {named(version)} needs a retention: how long it can be restored"
        )
    return replace(moved, tombstoned_at=now, retained_until=now + retention, reason=reason)


def restore_version(
    version: Version, missing: Sequence[str], verdict: Allow | Quarantine, now: datetime
) -> Version:
    moved = _moved(version, VersionCommand.RESTORE_VERSION, VersionState.PUBLISHED)
    if version.retained_until is None or now >= version.retained_until:
        raise Refused(f"{named(version)} was retained until {version.retained_until}: publish anew")
    if isinstance(verdict, Quarantine):
        raise Refused(f"{named(version)} is in quarantine: {verdict.reason}")
    _require_blobs(missing)
    return replace(moved, tombstoned_at=None, retained_until=None, reason=None)


class Succession(StrEnum):
    """What a run of a job that publishes does to what the job published before."""

    FIRST = "first"
    AGAIN = "again"
    REPLACES = "replaces"


def succession(before: Version | None, version: Version) -> Succession:
    """Both have a producer of the same job. A lower fence never replaces a higher one, and a run
    cannot publish two contents."""
    if before is None:
        return Succession.FIRST
    old, new = _producer(before).fence, _producer(version).fence
    if new < old:
        raise Refused(
            f"{named(before)} was published by {_run(old)} of the same job: {_run(new)} is outdated"
        )
    if before.state is VersionState.TOMBSTONED:
        return _after_withdrawal(before, is_newer=new > old)
    if before.entries == version.entries:
        return Succession.AGAIN
    if new == old:
        raise Refused(f"{named(before)} was published by the same run with other content")
    return Succession.REPLACES


def named(version: Version) -> str:
    return f"{version.name}/v{version.number}"


def _after_withdrawal(before: Version, *, is_newer: bool) -> Succession:
    if not is_newer:
        raise Refused(f"{named(before)}, published by the same run, was tombstoned")
    return Succession.FIRST


def _run(fence: Fence) -> str:
    return f"attempt {fence.attempt_no}, epoch {fence.epoch} of {fence.step_id}"


def _producer(version: Version) -> Producer:
    assert version.producer is not None, "only versions of one job are compared"
    return version.producer


def _moved(version: Version, command: VersionCommand, target: VersionState) -> Version:
    require_row(VERSION_TRANSITIONS, named(version), version.state, command, target)
    return replace(version, state=target)


def _require_blobs(missing: Sequence[str]) -> None:
    if missing:
        raise Gone(f"blob {missing[0]}")
