"""The API with artifacts: rows in memory or in a SQLite file, bytes in files, and clients that
bring and read content as clients do."""

import asyncio
import hashlib
import hmac
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx

from lucius_artifacts.artifacts import Artifacts, Rules
from lucius_artifacts.catalogue.memory import MemoryCatalogue
from lucius_artifacts.catalogue.sqlite import SqliteCatalogue
from lucius_artifacts.model import Version
from lucius_artifacts.objects.files import FileObjects
from lucius_artifacts.ports.catalogue import Catalogue
from lucius_artifacts.ports.policy import Allow, Quarantine
from lucius_artifacts.signing import UrlSigner
from lucius_artifacts.telemetry import Telemetry
from lucius_artifacts.world import Limits, World
from lucius_bus.memory import MemoryBus
from lucius_orchestrator.adapters.artifacts import ArtifactInputs, LedgerJobs
from lucius_orchestrator.api import ApiLimits
from tests.api.stage import LIFE, Stage
from tests.engine.plane import TENANT, Plane, Recorder
from tests.ledger.backends import Clock, MemoryBackend
from tests.runner.deadlines import DEADLINE

BASE = "http://api"
PART = 4
UPLOADS = "/v1/artifacts/uploads"
LIMITS = ApiLimits(
    max_body_bytes=64 * 1024,
    verification_patience=timedelta(seconds=DEADLINE),
    object_idle=timedelta(seconds=DEADLINE),
)


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def proof_of(challenge: str, content: bytes) -> str:
    return hmac.new(challenge.encode(), content, hashlib.sha256).hexdigest()


class Judge:
    """A policy whose verdict tests set."""

    def __init__(self) -> None:
        self.verdict: Allow | Quarantine | Exception = Allow()

    async def judge(self, version: Version) -> Allow | Quarantine:
        self.judged = version
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict


class GatedObjects(FileObjects):
    """Files that can be made to wait before they are verified."""

    def __init__(self, root: Path, signer: UrlSigner, base_url: str) -> None:
        super().__init__(root, signer, base_url)
        self.open = asyncio.Event()
        self.open.set()
        self.verified = 0

    async def digest(self, key: str) -> tuple[str, int]:
        self.verified += 1
        await self.open.wait()
        return await super().digest(key)


class ArtifactStage(Stage):
    def __init__(
        self, plane: Plane, catalogue: Catalogue, folder: Path, limits: ApiLimits = LIMITS
    ) -> None:
        self.policy = Judge()
        self.told = Recorder()
        self.rows = catalogue
        self.folder = folder
        numbers = itertools.count(1)
        signer = UrlSigner([b"s" * 32], plane.clock)
        self.objects = GatedObjects(folder, signer, BASE)
        self.artifacts = Artifacts.over(
            catalogue,
            self.objects,
            LedgerJobs(plane.ledger),
            World(plane.clock, lambda size: next(numbers).to_bytes(size)),
            Rules(limits=Limits(part_size=PART, max_open_uploads=5), policy=self.policy),
            telemetry=Telemetry(self.told),
            signer=signer,
        )
        plane.engine.inputs = ArtifactInputs(self.artifacts.reading)
        super().__init__(plane, limits, self.artifacts)

    async def begin(
        self, content: bytes, caller: str = "ada", tenant: str = TENANT, **members: Any
    ) -> dict[str, Any]:
        asked = {"tenant_id": tenant, "digest": digest_of(content), "length": len(content)}
        answer = await self.post(UPLOADS, caller, json=asked | members)
        assert answer.status_code == 201, answer.text
        upload: dict[str, Any] = answer.json()
        return upload

    async def signed(
        self, upload: dict[str, Any], numbers: list[int], caller: str = "ada"
    ) -> list[dict[str, Any]]:
        answer = await self.post(upload["links"]["sign"], caller, json={"parts": numbers})
        assert answer.status_code == 200, answer.text
        parts: list[dict[str, Any]] = answer.json()["parts"]
        return parts

    async def bring(
        self,
        upload: dict[str, Any],
        content: bytes,
        numbers: list[int] | None = None,
        caller: str = "ada",
    ) -> None:
        """Parts of the content, all of them unless some are named."""
        size = upload["part_size"]
        wanted = list(range(1, upload["part_count"] + 1)) if numbers is None else numbers
        for part in await self.signed(upload, wanted, caller):
            begin = (part["number"] - 1) * size
            answer = await self.put(part["url"], content[begin : begin + size])
            assert answer.status_code == 204, answer.text

    async def put(self, url: str, content: Any, **options: Any) -> httpx.Response:
        """As whoever has the address: nobody in particular."""
        return await self.ask("PUT", url, None, content=content, **options)

    async def complete(self, upload: dict[str, Any], caller: str = "ada") -> httpx.Response:
        return await self.post(upload["links"]["complete"], caller)

    async def uploaded(self, content: bytes, caller: str = "ada", tenant: str = TENANT) -> str:
        """The uri of content that was brought whole."""
        upload = await self.begin(content, caller, tenant)
        await self.bring(upload, content, caller=caller)
        answer = await self.complete(upload, caller)
        assert answer.status_code == 200, answer.text
        uri: str = answer.json()["uri"]
        return uri

    async def publish(
        self,
        name: str,
        *contents: bytes,
        caller: str = "ada",
        tenant: str = TENANT,
        **members: Any,
    ) -> httpx.Response:
        entries = [
            {
                "path": f"files/{number}.txt",
                "digest": digest_of(content),
                "media_type": "text/plain",
            }
            for number, content in enumerate(contents)
        ]
        asked = {"tenant_id": tenant, "entries": entries, **members}
        return await self.post(f"/v1/artifacts/{name}/versions", caller, json=asked)

    async def published(
        self, name: str, content: bytes, caller: str = "ada", tenant: str = TENANT
    ) -> str:
        """The uri of the one file of a new version."""
        await self.uploaded(content, caller, tenant)
        answer = await self.publish(name, content, caller=caller, tenant=tenant)
        assert answer.status_code == 201, answer.text
        uri: str = answer.json()["entries"][0]["uri"]
        return uri

    def producer(
        self, attempt_no: int = 1, epoch: int = 1, job_id: str = "job_1", tenant: str = TENANT
    ) -> dict[str, Any]:
        """A run of the first step of a job, with the token of its directive."""
        run = {"jobId": job_id, "stepId": "step_01", "attempt_no": attempt_no, "epoch": epoch}
        ends = self.plane.clock() + LIFE
        token = self.tokens.issue_producer(tenant, job_id, "step_01", attempt_no, ends)
        return {**run, "token": token}

    async def located(self, uri: str, caller: str = "ada", **query: str) -> httpx.Response:
        return await self.get("/v1/artifacts/content", caller, params={"uri": uri, **query})

    async def read(self, uri: str, caller: str = "ada", **query: str) -> bytes:
        answer = await self.located(uri, caller, **query)
        assert answer.status_code == 200, answer.text
        return (await self.get(answer.json()["url"], None)).content

    async def tombstone(self, name: str, version: int, retention: int = 3600) -> httpx.Response:
        asked = {"tenant_id": TENANT, "retention_seconds": retention, "reason": "replaced"}
        return await self.post(
            f"/v1/artifacts/{name}/versions/{version}:tombstone", "operator", json=asked
        )

    async def run(self, **members: Any) -> httpx.Response:
        return await self.post("/v1/artifacts/runs", "root", json=members)


@asynccontextmanager
async def artifact_stage(
    kind: str, folder: Path, limits: ApiLimits = LIMITS
) -> AsyncIterator[ArtifactStage]:
    backend = MemoryBackend(Clock())
    bus = MemoryBus(backend.clock)
    await backend.start()
    catalogue: Catalogue = MemoryCatalogue()
    if kind == "sqlite":
        catalogue = await SqliteCatalogue.open(folder / "artifacts.db")
    stage = ArtifactStage(Plane.new(backend, bus), catalogue, folder / "objects", limits)
    try:
        yield stage
    finally:
        await stage.artifacts.verifications.close()
        await stage.objects.close()
        await catalogue.close()
        await bus.close()
        await backend.stop()
