"""All use cases over a catalogue and objects in memory, with a clock that stands still."""

import hmac
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from os import urandom

from lucius_artifacts.artifacts import Artifacts, Rules
from lucius_artifacts.catalogue.memory import MemoryCatalogue
from lucius_artifacts.collection import Schedule
from lucius_artifacts.model import Blob, Fence, Producer, Upload, Version
from lucius_artifacts.objects.memory import MemoryObjects
from lucius_artifacts.ports.jobs import Standing, Unknown
from lucius_artifacts.ports.policy import Allow, Quarantine
from lucius_artifacts.publishing import Author, NewEntry
from lucius_artifacts.uploading import Part
from lucius_artifacts.world import Limits, World
from tests.artifacts.rows import NOW

ACME, BOLT = "acme", "bolt"


def digest_of(content: bytes) -> str:
    return sha256(content).hexdigest()


def proof_of(upload: Upload, content: bytes) -> str:
    return hmac.new(upload.challenge.encode(), content, sha256).hexdigest()


async def chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content


@dataclass
class Judge:
    """Answers as told, after whatever `meanwhile` does."""

    verdict: Allow | Quarantine | Exception = field(default_factory=Allow)
    meanwhile: Callable[[], object] | None = None

    async def judge(self, version: Version) -> Allow | Quarantine:  # noqa: ARG002 - any version
        if self.meanwhile is not None:
            await self.meanwhile()  # type: ignore[misc]
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


@dataclass
class Ledger:
    jobs: dict[str, Standing] = field(default_factory=dict)

    async def standing(self, job_id: str) -> Standing:
        return self.jobs.get(job_id, Unknown())


class Stage:
    def __init__(self, limits: Limits | None = None, schedule: Schedule | None = None) -> None:
        self.now: datetime = NOW
        self.judge = Judge()
        self.ledger = Ledger()
        self.catalogue = MemoryCatalogue()
        self.objects = MemoryObjects(lambda: self.now)
        self.rows = self.catalogue.rows
        self.all = Artifacts.over(
            self.catalogue,
            self.objects,
            self.ledger,
            World(lambda: self.now, urandom),
            Rules(
                limits=limits or Limits(part_size=4),
                schedule=schedule or Schedule(),
                policy=self.judge,
            ),
        )

    def let_pass(self, delay: timedelta) -> None:
        self.now += delay

    @property
    def told(self) -> list[str]:
        return [message.topic for message in self.catalogue.messages]

    @property
    def audited(self) -> list[str]:
        return [record.action for record in self.rows.audit.values()]

    async def initiate(self, content: bytes, tenant_id: str = ACME) -> Upload:
        return await self.all.uploads.initiate(tenant_id, "ann", digest_of(content), len(content))

    async def sign(self, upload: Upload) -> list[Part]:
        numbers = range(1, upload.part_count + 1)
        return await self.all.uploads.sign_parts(upload.tenant_id, upload.upload_id, [*numbers])

    async def put(self, upload: Upload, parts: Sequence[Part], content: bytes) -> None:
        for part in parts:
            start = (part.number - 1) * upload.part_size
            piece = content[start : start + upload.part_size]
            await self.objects.redeem_put(part.request.url, chunks(piece))

    async def complete(self, upload: Upload) -> Upload:
        return await self.all.uploads.complete(upload.tenant_id, upload.upload_id)

    async def upload(self, content: bytes, tenant_id: str = ACME) -> str:
        """The whole way; the digest."""
        upload = await self.initiate(content, tenant_id)
        await self.put(upload, await self.sign(upload), content)
        await self.complete(upload)
        return upload.digest

    async def publish(
        self, content: bytes, tenant_id: str = ACME, name: str = "answers", run: Fence | None = None
    ) -> Version:
        producer = None if run is None else Producer("job_1", run)
        author = Author(tenant_id, "ann", producer)
        entry = NewEntry("answer.json", digest_of(content))
        return await self.all.publishing.publish(author, name, [entry])

    async def tombstone(self, version: Version, retention: timedelta) -> Version:
        return await self.all.publishing.tombstone(
            Author(version.tenant_id, "ann"),
            version.name,
            version.number,
            authorized=True,
            retention=retention,
            reason="wrong",
        )

    def blob(self, digest: str) -> Blob:
        return self.rows.blobs[self.rows.object_keys[digest]]

    def has_object(self, digest: str) -> bool:
        key = self.rows.object_keys.get(digest)
        return key is not None and key in self.objects._frozen
