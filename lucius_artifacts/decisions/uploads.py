"""What becomes of an upload session."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from lucius_artifacts.decisions.moving import require_row
from lucius_artifacts.errors import Refused
from lucius_artifacts.model import Blob, Upload
from lucius_artifacts.states import UPLOAD_TRANSITIONS, UploadCommand, UploadState

_NAMED = 10
EXPIRED = "the session expired"


@dataclass(frozen=True, slots=True)
class Measured:
    """What stored bytes turned out to be. `proof` is their HMAC with a session's challenge, if one
    was asked for."""

    digest: str
    length: int
    proof: str | None = None


def start_parts_upload(upload: Upload, now: datetime) -> Upload:
    moved = _moved(upload, UploadCommand.START_PARTS_UPLOAD, UploadState.PARTS_UPLOADING)
    _require_not_expired(upload, now)
    return moved


def fast_path_dedupe(upload: Upload, blob: Blob, proof_holds: bool, now: datetime) -> Upload:
    """`blob` is the one that has the digest now; its recorded length was verified when it came."""
    moved = _moved(upload, UploadCommand.FAST_PATH_DEDUPE, UploadState.COMMITTED)
    _require_not_expired(upload, now)
    if not proof_holds or (blob.digest, blob.length) != (upload.digest, upload.length):
        raise unproved()
    return replace(moved, ended_at=now)


def refuse_proof(upload: Upload) -> Upload:
    """A session has one try, so that nobody has a large blob read again and again."""
    return replace(upload, proof_refused=True)


def unproved() -> Refused:
    """The same words whether the content exists or not."""
    return Refused(
        "the tenant has no such content here, or the proof does not hold: upload its parts instead"
    )


def complete_parts(
    upload: Upload, sizes: Mapping[int, int], now: datetime, lifetime: timedelta
) -> Upload:
    """`sizes` are those of the parts that the storage has. The session then lives another
    lifetime: its client has nothing left to do, and verification may take long."""
    moved = _moved(upload, UploadCommand.COMPLETE_PARTS, UploadState.PENDING_COMMIT)
    _require_not_expired(upload, now)
    _require_parts(upload, sizes)
    return replace(moved, expires_at=now + lifetime)


def commit_upload(upload: Upload, measured: Measured, now: datetime) -> Upload:
    """COMMITTED, or ABORTED with the reason when the stored bytes are not what was announced."""
    wrong = _difference(upload, measured)
    if wrong is None:
        moved = _moved(upload, UploadCommand.COMMIT_UPLOAD, UploadState.COMMITTED)
        return replace(moved, ended_at=now)
    moved = _moved(upload, UploadCommand.COMMIT_UPLOAD, UploadState.ABORTED)
    return replace(moved, ended_at=now, reason=wrong)


def abort_upload(upload: Upload, reason: str, now: datetime) -> Upload:
    moved = _moved(upload, UploadCommand.ABORT_UPLOAD, UploadState.ABORTED)
    return replace(moved, ended_at=now, reason=reason)


def expire_upload(upload: Upload, now: datetime) -> Upload:
    if now < upload.expires_at:
        raise Refused(f"upload {upload.upload_id} has not expired")
    return abort_upload(upload, EXPIRED, now)


def _moved(upload: Upload, command: UploadCommand, target: UploadState) -> Upload:
    what = f"upload {upload.upload_id}"
    require_row(UPLOAD_TRANSITIONS, what, upload.state, command, target)
    return replace(upload, state=target)


def _require_not_expired(upload: Upload, now: datetime) -> None:
    if now >= upload.expires_at:
        raise Refused(f"upload {upload.upload_id} has expired: begin a new one")


def _require_parts(upload: Upload, sizes: Mapping[int, int]) -> None:
    wrong = [
        number
        for number in range(1, upload.part_count + 1)
        if sizes.get(number) != upload.size_of_part(number)
    ]
    if wrong:
        named = ", ".join(map(str, wrong[:_NAMED])) + (", ..." if len(wrong) > _NAMED else "")
        raise Refused(
            f"{len(wrong)} of {upload.part_count} parts are missing or have another size: bring"
            f" {named}, then complete again"
        )


def _difference(upload: Upload, measured: Measured) -> str | None:
    if measured.length != upload.length:
        return f"the stored content has {measured.length} bytes, not {upload.length}"
    if measured.digest != upload.digest:
        return f"the stored content has the digest {measured.digest}, not {upload.digest}"
    return None
