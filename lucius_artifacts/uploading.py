"""Uploads: from a session to verified content.

The order of effects is what makes every crash harmless. The row comes before the object, so that
whatever is in storage belongs to a session; the object is frozen before it is measured, so that
what was verified is what stays; and the transaction that makes the blob visible is the last act.
"""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lucius_artifacts.announcing import Announcing
from lucius_artifacts.decisions import uploads as decide
from lucius_artifacts.decisions.blobs import needed
from lucius_artifacts.decisions.uploads import Measured
from lucius_artifacts.errors import Busy, NotFound
from lucius_artifacts.events import EventType, upload_event
from lucius_artifacts.measuring import measure
from lucius_artifacts.model import AuditRecord, Blob, Claim, Doomed, Upload
from lucius_artifacts.owning import Content, own_content
from lucius_artifacts.ports.catalogue import Catalogue, Transaction
from lucius_artifacts.ports.objects import Objects, SignedRequest
from lucius_artifacts.states import BlobState, UploadState
from lucius_artifacts.world import Limits, World


@dataclass(frozen=True, slots=True)
class Part:
    number: int
    request: SignedRequest


@dataclass(frozen=True, slots=True)
class Progress:
    """A session and the parts that the storage has, by number with their sizes."""

    upload: Upload
    received: dict[int, int]


class Uploads:
    def __init__(
        self, catalogue: Catalogue, objects: Objects, world: World, limits: Limits
    ) -> None:
        self._catalogue = catalogue
        self._objects = objects
        self._world = world
        self._limits = limits
        self._announcing = Announcing(objects, world, limits)

    async def initiate(
        self,
        tenant_id: str,
        actor: str,
        digest: str,
        length: int,
        part_size: int | None = None,
    ) -> Upload:
        """A session for one content. Nothing tells whether the digest is known here already."""
        upload = self._announcing.new_upload(tenant_id, actor, digest, length, part_size)

        async def insert(rows: Transaction) -> Upload:
            if await rows.open_uploads(tenant_id) >= self._limits.max_open_uploads:
                raise Busy(
                    f"{self._limits.max_open_uploads} uploads are open: complete or abort some"
                )
            await rows.put_upload(upload)
            return upload

        return await self._catalogue.change(insert)

    async def find(self, upload_id: str) -> Upload:
        """Whosever it is: for those who know its id alone, and ask then who may see it."""
        upload = await self._catalogue.read(lambda rows: rows.upload(upload_id))
        if upload is None:
            raise NotFound(f"upload {upload_id}")
        return upload

    async def progress(self, tenant_id: str, upload_id: str) -> Progress:
        upload = await self._read(tenant_id, upload_id)
        if upload.state not in {UploadState.PARTS_UPLOADING, UploadState.PENDING_COMMIT}:
            return Progress(upload, {})
        return Progress(upload, await self._objects.parts(upload.object_key))

    async def sign_parts(
        self, tenant_id: str, upload_id: str, numbers: Sequence[int]
    ) -> list[Part]:
        """Begin to bring parts, or go on: URLs for these, as often as they are asked for."""
        now = self._world.clock()

        async def start(rows: Transaction) -> Upload:
            upload = await _found(rows, tenant_id, upload_id)
            self._announcing.check_numbers(upload, numbers)
            if upload.state is UploadState.PARTS_UPLOADING and now < upload.expires_at:
                return upload
            upload = decide.start_parts_upload(upload, now)
            await rows.put_upload(upload)
            return upload

        upload = await self._catalogue.change(start)
        await self._objects.begin(upload.object_key)
        until = min(now + self._limits.url_lifetime, upload.expires_at)
        return [await self._signed(upload, number, until) for number in numbers]

    async def dedupe(self, tenant_id: str, upload_id: str, proof: str) -> Upload:
        """The fast path, for content that the tenant itself has here. `proof` is the HMAC-SHA256
        of the whole content, with the session's challenge as its key, in lower-case hex.

        `Refused`, in the same words and without a look at what is stored, for content that is not
        here and for content of other tenants: a proof costs whoever guesses a content nothing.
        """
        upload = await self._read(tenant_id, upload_id)
        if upload.state is UploadState.COMMITTED:
            return upload
        proved = await self._proved(upload, proof)
        if proved is None:
            await self._catalogue.change(lambda rows: _refuse_proof(rows, tenant_id, upload_id))
            raise decide.unproved()
        now = self._world.clock()

        async def commit(rows: Transaction) -> Upload:
            upload = await _found(rows, tenant_id, upload_id)
            own = await own_content(rows, tenant_id, upload.digest)
            if own is None or own.object_key != proved.object_key:
                raise decide.unproved()
            upload = decide.fast_path_dedupe(upload, own.blob, True, now)
            await rows.put_blob(needed(own.blob, now))
            await rows.put_claim(replace(own.claim, claimed_at=now))
            await _committed(rows, upload, "the tenant's own content, with a proof", now)
            return upload

        return await self._catalogue.change(commit)

    async def complete_parts(self, tenant_id: str, upload_id: str) -> Upload:
        """All parts are there: from now on the session waits to be verified, or it was committed
        before. Again is no error."""
        upload = await self._read(tenant_id, upload_id)
        if upload.state in {UploadState.PENDING_COMMIT, UploadState.COMMITTED}:
            return upload
        return await self._all_parts(upload)

    async def complete(self, tenant_id: str, upload_id: str) -> Upload:
        """All parts are there: verify what is stored, and commit or abort. Safe to repeat; it takes
        as long as reading the content does."""
        upload = await self.complete_parts(tenant_id, upload_id)
        if upload.state is UploadState.COMMITTED:
            return upload
        try:
            await self._objects.freeze(upload.object_key, upload.part_count)
            measured = await measure(self._objects, upload.object_key)
        except NotFound:
            return await self._parts_lost(tenant_id, upload_id)
        return await self._commit(tenant_id, upload_id, measured)

    async def abort(self, tenant_id: str, upload_id: str, actor: str) -> Upload:
        """Again is no error."""
        return await self._abort(tenant_id, upload_id, f"aborted by {actor}")

    async def expire(self, limit: int = 100) -> list[Upload]:
        """Abort sessions whose time is over."""
        now = self._world.clock()

        async def expire(rows: Transaction) -> list[Upload]:
            late = [
                decide.expire_upload(upload, now)
                for upload in await rows.expired_uploads(now, limit)
            ]
            for upload in late:
                await self._aborted(rows, upload, now)
            return late

        return await self._catalogue.change(expire)

    async def _signed(self, upload: Upload, number: int, until: datetime) -> Part:
        length = upload.size_of_part(number)
        return Part(number, await self._objects.sign_part(upload.object_key, number, length, until))

    async def _read(self, tenant_id: str, upload_id: str) -> Upload:
        upload = await self._catalogue.read(lambda rows: rows.upload(upload_id))
        return _visible(upload, tenant_id, upload_id)

    async def _proved(self, upload: Upload, proof: str) -> Content | None:
        """What the tenant has of the session's digest and length, if the proof is that of its
        bytes."""
        if upload.proof_refused or upload.state is not UploadState.INITIATED:
            return None
        tenant_id, digest = upload.tenant_id, upload.digest
        own = await self._catalogue.read(lambda rows: own_content(rows, tenant_id, digest))
        if own is None or own.blob.length != upload.length:
            return None
        try:
            measured = await measure(self._objects, own.object_key, upload.challenge)
        except NotFound:
            return None
        return own if _same(measured.proof or "", proof) else None

    async def _all_parts(self, upload: Upload) -> Upload:
        now = self._world.clock()
        sizes = await self._objects.parts(upload.object_key)

        async def complete(rows: Transaction) -> Upload:
            found = await _found(rows, upload.tenant_id, upload.upload_id)
            if found.state is UploadState.PENDING_COMMIT:
                return found
            found = decide.complete_parts(found, sizes, now, self._limits.session_lifetime)
            await rows.put_upload(found)
            return found

        return await self._catalogue.change(complete)

    async def _commit(self, tenant_id: str, upload_id: str, measured: Measured) -> Upload:
        now = self._world.clock()

        async def commit(rows: Transaction) -> Upload:
            upload = await _found(rows, tenant_id, upload_id)
            if upload.state is UploadState.COMMITTED:
                return upload
            upload = decide.commit_upload(upload, measured, now)
            if upload.state is UploadState.ABORTED:
                await self._aborted(rows, upload, now)
            else:
                await self._stored(rows, upload, now)
            return upload

        return await self._catalogue.change(commit)

    async def _stored(self, rows: Transaction, upload: Upload, now: datetime) -> None:
        """Content that the tenant brought before stays where it is, and this object goes; content
        of other tenants makes no difference to what this one gets."""
        own = await own_content(rows, upload.tenant_id, upload.digest)
        blob = own.blob if own is not None else await rows.blob(upload.digest)
        if own is not None:
            claim = replace(own.claim, claimed_at=now)
            await rows.put_doomed(self._doomed(upload, now, "the tenant had the content already"))
        else:
            claim = Claim(upload.tenant_id, upload.digest, now, upload.object_key)
        if blob is None:
            blob = Blob(upload.digest, upload.length, upload.object_key, BlobState.LIVE, now, now)
            claim = replace(claim, object_key=None)
        await rows.put_blob(needed(blob, now))
        await rows.put_claim(claim)
        await _committed(rows, upload, "verified", now)

    async def _parts_lost(self, tenant_id: str, upload_id: str) -> Upload:
        """Storage that had all parts has not: whoever aborted the session took them away, or they
        were lost."""
        upload = await self._read(tenant_id, upload_id)
        if upload.is_open:
            upload = await self._abort(tenant_id, upload_id, "the storage has lost parts of it")
        return upload

    async def _abort(self, tenant_id: str, upload_id: str, reason: str) -> Upload:
        now = self._world.clock()

        async def abort(rows: Transaction) -> Upload:
            upload = await _found(rows, tenant_id, upload_id)
            if upload.state is UploadState.ABORTED:
                return upload
            upload = decide.abort_upload(upload, reason, now)
            await self._aborted(rows, upload, now)
            return upload

        return await self._catalogue.change(abort)

    async def _aborted(self, rows: Transaction, upload: Upload, now: datetime) -> None:
        await rows.put_upload(upload)
        await rows.put_doomed(self._doomed(upload, now, upload.reason or ""))
        await rows.record(_audit(upload, upload.reason or "", now))
        await rows.emit(upload_event(EventType.UPLOAD_ABORTED, upload, now))

    def _doomed(self, upload: Upload, now: datetime, why: str) -> Doomed:
        """Not before the last URL that was handed out has expired: one that is redeemed later finds
        nothing to write to, and leaves nothing behind."""
        return Doomed(upload.object_key, now + self._limits.url_lifetime, why)


async def _found(rows: Transaction, tenant_id: str, upload_id: str) -> Upload:
    return _visible(await rows.upload(upload_id), tenant_id, upload_id)


def _visible(upload: Upload | None, tenant_id: str, upload_id: str) -> Upload:
    if upload is None or upload.tenant_id != tenant_id:
        raise NotFound(f"upload {upload_id}")
    return upload


async def _refuse_proof(rows: Transaction, tenant_id: str, upload_id: str) -> None:
    upload = await _found(rows, tenant_id, upload_id)
    await rows.put_upload(decide.refuse_proof(upload))


async def _committed(rows: Transaction, upload: Upload, how: str, now: datetime) -> None:
    await rows.put_upload(upload)
    await rows.record(_audit(upload, how, now))
    await rows.emit(upload_event(EventType.UPLOAD_COMMITTED, upload, now))


def _audit(upload: Upload, detail: str, now: datetime) -> AuditRecord:
    subject = f"upload {upload.upload_id}"
    return AuditRecord(
        now, upload.created_by, upload.tenant_id, f"upload.{upload.state}", subject, detail
    )


def _same(ours: str, theirs: str) -> bool:
    return hmac.compare_digest(ours.encode(), theirs.encode())
