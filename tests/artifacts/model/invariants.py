"""What must hold at every moment, whatever happened before."""

from hashlib import sha256

from lucius_artifacts.model import Blob, Entry, Upload
from lucius_artifacts.states import BlobState, UploadState
from tests.artifacts.model.world import Stage


class Invariants:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._rows = stage.catalogue.rows
        self._uploads_seen = 0
        self._found_at_opening: dict[str, str | None] = {}
        self._entries: dict[tuple[str, str, int], tuple[Entry, ...]] = {}
        stage.observe = self.check

    def check(self) -> None:
        self._blobs_have_their_bytes()
        self._look_at_new_uploads()
        self._open_uploads_keep_what_they_found()
        self._retained_versions_are_whole()
        self._running_jobs_have_their_input()

    def check_told(self) -> None:
        """Every end of an upload and every deletion is in the outbox, once."""
        told = [message.topic for message in self._stage.catalogue.messages]
        states = [upload.state for upload in self._rows.uploads.values()]
        deleted = [each for each in self._rows.blobs.values() if each.state is BlobState.DELETED]
        assert told.count("upload.committed") == states.count(UploadState.COMMITTED)
        assert told.count("upload.aborted") == states.count(UploadState.ABORTED)
        assert told.count("blob.deleted") == len(deleted)

    def check_nothing_is_left(self) -> None:
        assert not self._rows.doomed
        assert not self._rows.object_keys
        assert not self._stage.objects._places
        assert not self._stage.objects._frozen

    def _blobs_have_their_bytes(self) -> None:
        for digest in self._rows.object_keys:
            assert self._is_whole(digest), f"blob {digest} has lost its bytes"

    def _look_at_new_uploads(self) -> None:
        if len(self._rows.uploads) > self._uploads_seen:
            for upload_id in list(self._rows.uploads)[self._uploads_seen :]:
                digest = self._rows.uploads[upload_id].digest
                self._found_at_opening[upload_id] = self._rows.object_keys.get(digest)
            self._uploads_seen = len(self._rows.uploads)

    def _retained_versions_are_whole(self) -> None:
        for key, version in self._rows.versions.items():
            assert self._entries.setdefault(key, version.entries) == version.entries
            if version.retained_until is None or version.retained_until > self._stage.now:
                for digest in version.digests:
                    assert digest in self._rows.object_keys, f"{key} has lost blob {digest}"

    def _running_jobs_have_their_input(self) -> None:
        for job_id, ended_at in self._stage.ledger.ended.items():
            digest = self._stage.ledger.reads[job_id]
            if ended_at is None:
                assert digest in self._rows.object_keys, f"{job_id} has lost blob {digest}"

    def _open_uploads_keep_what_they_found(self) -> None:
        for upload_id, found in list(self._found_at_opening.items()):
            upload = self._rows.uploads[upload_id]
            if upload.is_open:
                key = self._rows.object_keys.get(upload.digest)
                assert found in {None, key}, f"{upload_id} has lost its blob"
            else:
                self._was_verified_if_committed(upload)
                del self._found_at_opening[upload_id]

    def _was_verified_if_committed(self, upload: Upload) -> None:
        if upload.state is UploadState.COMMITTED:
            assert self._is_whole(upload.digest), f"{upload.upload_id} has no verified bytes"
            assert (upload.tenant_id, upload.digest) in self._rows.claims

    def _is_whole(self, digest: str) -> bool:
        """The blob's object and every tenant's own."""
        blob = self._blob(digest)
        if blob is None:
            return False
        claims = [claim for claim in self._rows.claims.values() if claim.digest == digest]
        keys = {claim.object_key or blob.object_key for claim in claims}
        return all(self._holds(key, blob) for key in {*keys, blob.object_key})

    def _holds(self, object_key: str, blob: Blob) -> bool:
        parts = self._stage.objects._frozen.get(object_key)
        content = None if parts is None else b"".join(parts.values())
        if content is None:
            return False
        return (sha256(content).hexdigest(), len(content)) == (blob.digest, blob.length)

    def _blob(self, digest: str) -> Blob | None:
        key = self._rows.object_keys.get(digest)
        return None if key is None else self._rows.blobs[key]
