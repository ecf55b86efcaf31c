"""A small world of tenants, contents, jobs and collectors, and what they do at random moments."""

import hmac
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from itertools import product
from random import Random
from typing import Any

from lucius_artifacts.catalogue.memory import MemoryCatalogue
from lucius_artifacts.collection import Collector, Schedule
from lucius_artifacts.errors import ArtifactsError, Unavailable
from lucius_artifacts.model import Fence, Producer, Upload, Version
from lucius_artifacts.names import BlobUri
from lucius_artifacts.objects.memory import MemoryObjects
from lucius_artifacts.ports.jobs import Ended, Running, Standing, Unknown
from lucius_artifacts.ports.policy import Allow, Quarantine
from lucius_artifacts.publishing import Author, NewEntry, Publishing
from lucius_artifacts.reading import Reading
from lucius_artifacts.states import VersionState
from lucius_artifacts.uploading import Part, Uploads
from lucius_artifacts.world import Limits, World
from tests.artifacts.model.staging import Answer, StagedCatalogue, StagedObjects, moment
from tests.artifacts.rows import NOW

TENANTS = ("acme", "bolt")
CONTENTS = (b"", b"ab", b"abc", b"xyz12", b"0", b"1")
NAMES = ("answers", "scans")
DIGESTS = tuple(sha256(content).hexdigest() for content in CONTENTS)
REQUEST_TIMEOUT = timedelta(seconds=30)
LIMITS = Limits(part_size=2, max_open_uploads=50)
SCHEDULE = Schedule(
    grace=timedelta(hours=1),
    retention=timedelta(hours=2),
    lease=timedelta(minutes=1),
    page=2,
)
MOST_TASKS = 5
MOST_EDGES = 8
DELAYS = (
    timedelta(seconds=7),
    timedelta(minutes=50),
    timedelta(hours=2),
    timedelta(hours=3),
    timedelta(days=2),
)

Act = Coroutine[Any, Answer | None, object]


class Exhausted(BaseException):
    """There are no more decisions. Nobody who forgives errors forgives this."""


class Choices:
    """Decisions, one byte each."""

    def __init__(self, decisions: bytes) -> None:
        self._left: Iterator[int] = iter(decisions)

    def of(self, count: int) -> int:
        decision = next(self._left, None)
        if decision is None:
            raise Exhausted
        return decision % count

    def chance(self, one_in: int) -> bool:
        return self.of(one_in) == 0


@dataclass(slots=True)
class Task:
    act: Act
    deadline: datetime | None


@dataclass(slots=True)
class Ledger:
    """Which jobs there are, what they read, and when they ended. None: they run."""

    ended: dict[str, datetime | None] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)

    async def standing(self, job_id: str) -> Standing:
        if job_id not in self.ended:
            return Unknown()
        at = self.ended[job_id]
        return Running() if at is None else Ended(at)


class Moods:
    """A policy that allows, quarantines, or cannot be asked."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices

    async def judge(self, _: Version) -> Allow | Quarantine:
        await moment()
        match self._choices.of(8):
            case 0:
                raise Unavailable("the policy is away")
            case 1:
                return Quarantine("looks odd")
        return Allow()


class Stage:
    """`observe` is called after everything that happens."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.now = NOW
        self.tasks: list[Task] = []
        self.ledger = Ledger()
        self.catalogue = MemoryCatalogue()
        self.objects = MemoryObjects(lambda: self.now)
        self.uploads_known: list[Upload] = []
        self.parts_known: list[tuple[Upload, Part]] = []
        self.versions_known: list[Version] = []
        self.jobs = 0
        self.edges = 0
        self.observe: Callable[[], None] = lambda: None
        self._compose()

    def _compose(self) -> None:
        catalogue, objects = StagedCatalogue(self.catalogue), StagedObjects(self.objects)
        world = World(lambda: self.now, Random(0).randbytes)
        self.uploads = Uploads(catalogue, objects, world, LIMITS)
        self.publishing = Publishing(catalogue, Moods(self.choices), world, LIMITS)
        self.reading = Reading(catalogue, objects, world, LIMITS)
        self.collector = Collector(catalogue, objects, self.uploads, self.ledger, world, SCHEDULE)

    def step(self) -> None:
        kind = self.choices.of(128)
        if kind == 127 and self.edges < MOST_EDGES:
            self._come_to_the_edge()
        elif kind > 124:
            self.let_time_pass(self._one(DELAYS))
        elif not self.tasks or (kind > 96 and len(self.tasks) < MOST_TASKS):
            self._begin(self._one(self._acts()))
        else:
            self._go_on(self.choices.of(len(self.tasks)))

    def _come_to_the_edge(self) -> None:
        """Everything is there, and nobody needs it but jobs: the next collection deletes what
        nobody comes to need in the midst of it."""
        self.edges += 1
        self.crash_all()
        for tenant_id, content in product(TENANTS, CONTENTS):
            self.finish(self._uploaded(tenant_id, content))
        self.tombstone_all()
        if self.choices.chance(2):
            self.end_all_jobs()
        self.let_time_pass(timedelta(days=9))
        self.collect()
        self.let_time_pass(SCHEDULE.retention)
        self._begin(self.collector.collect)
        for _ in range(self.choices.of(128)):
            self._send(self.tasks[0], Answer.GO_ON)
            if not self.tasks:
                break

    def end_all_jobs(self) -> None:
        for job_id, ended_at in self.ledger.ended.items():
            self.ledger.ended[job_id] = ended_at or self.now

    def tombstone_all(self) -> None:
        for version in list(self.catalogue.rows.versions.values()):
            if version.state is VersionState.PUBLISHED:
                self.finish(self._tombstoned(version, timedelta(0)))

    def collect(self) -> None:
        """When nobody else does."""
        self.let_time_pass(SCHEDULE.lease)
        self.finish(self.collector.collect())

    def let_time_pass(self, delay: timedelta) -> None:
        """A request ends at its timeout; nothing it began goes on after that."""
        self.now += delay
        for task in [each for each in self.tasks if each.deadline and each.deadline < self.now]:
            self._crash(task)

    def finish(self, act: Act) -> None:
        """To its end, with nothing in between."""
        with suppress(StopIteration):
            while True:
                act.send(None)
                self.observe()
        self.observe()

    def crash_all(self) -> None:
        for task in list(self.tasks):
            self._crash(task)

    def _begin(self, act: Callable[[], Act]) -> None:
        is_request = act != self.collector.collect
        deadline = self.now + REQUEST_TIMEOUT if is_request else None
        task = Task(_forgiving(act()), deadline)
        self.tasks.append(task)
        self._send(task, None)

    def _go_on(self, position: int) -> None:
        task = self.tasks[position]
        match self.choices.of(100):
            case 0:
                self._crash(task)
            case 1:
                self._send(task, Answer.FAIL)
            case _:
                self._send(task, Answer.GO_ON)

    def _send(self, task: Task, answer: Answer | None) -> None:
        try:
            task.act.send(answer)
        except StopIteration:
            self.tasks.remove(task)
        self.observe()

    def _crash(self, task: Task) -> None:
        task.act.close()
        self.tasks.remove(task)

    def _acts(self) -> list[Callable[[], Act]]:
        acts: list[Callable[[], Act]] = [
            self._initiate,
            self._whole_upload,
            self._whole_upload,
            self._publish,
            self._publish,
            self._run_publishes,
            self._start_job,
            self._start_job,
            self._start_job,
            self._end_job,
            self.collector.collect,
            self.collector.collect,
        ]
        if self.uploads_known:
            acts += [self._sign, self._complete, self._abort, self._dedupe, self._dedupe]
        if self.parts_known:
            acts += [self._put_part, self._put_part]
        if self.versions_known:
            acts += [self._tombstone, self._restore, self._publish_draft]
        return acts

    def _one(self, many: Any) -> Any:
        return many[self.choices.of(len(many))]

    async def _initiate(self) -> Upload:
        return await self._initiated(self._one(TENANTS), self._one(CONTENTS))

    async def _initiated(self, tenant_id: str, content: bytes) -> Upload:
        digest, length = sha256(content).hexdigest(), len(content)
        upload = await self.uploads.initiate(tenant_id, "ann", digest, length)
        self.uploads_known.append(upload)
        return upload

    async def _sign(self) -> None:
        upload = self._one(self.uploads_known)
        await self._signed(upload)

    async def _signed(self, upload: Upload) -> list[Part]:
        numbers = list(range(1, upload.part_count + 1))
        parts = await self.uploads.sign_parts(upload.tenant_id, upload.upload_id, numbers)
        self.parts_known += [(upload, part) for part in parts]
        return parts

    async def _put_part(self) -> None:
        """The right bytes or others, by whoever still has the address."""
        await self._put(*self._one(self.parts_known), is_right=not self.choices.chance(4))

    async def _put(self, upload: Upload, part: Part, *, is_right: bool) -> None:
        content = CONTENTS[DIGESTS.index(upload.digest)]
        start = (part.number - 1) * upload.part_size
        right = content[start : start + upload.part_size]
        body = right if is_right else bytes(byte ^ 1 for byte in right)
        await self.objects.redeem_put(part.request.url, _chunks(body))

    async def _complete(self) -> None:
        upload = self._one(self.uploads_known)
        await self.uploads.complete(upload.tenant_id, upload.upload_id)

    async def _whole_upload(self) -> None:
        upload = await self._initiate()
        for part in await self._signed(upload):
            await self._put(upload, part, is_right=not self.choices.chance(16))
        await self.uploads.complete(upload.tenant_id, upload.upload_id)

    async def _uploaded(self, tenant_id: str, content: bytes) -> None:
        upload = await self._initiated(tenant_id, content)
        for part in await self._signed(upload):
            await self._put(upload, part, is_right=True)
        await self.uploads.complete(tenant_id, upload.upload_id)

    async def _abort(self) -> None:
        upload = self._one(self.uploads_known)
        await self.uploads.abort(upload.tenant_id, upload.upload_id, "ann")

    async def _dedupe(self) -> None:
        upload = self._one(self.uploads_known)
        content = CONTENTS[DIGESTS.index(upload.digest)]
        key = b"guess" if self.choices.chance(4) else upload.challenge.encode()
        proof = hmac.new(key, content, sha256).hexdigest()
        await self.uploads.dedupe(upload.tenant_id, upload.upload_id, proof)

    async def _publish(self) -> None:
        await self._published(Author(self._one(TENANTS), "ann"))

    async def _run_publishes(self) -> None:
        """Runs of three jobs, in any order of attempts."""
        step_id = f"step_0{1 + self.choices.of(2)}"
        fence = Fence(step_id, 1 + self.choices.of(3), 1 + self.choices.of(2))
        producer = Producer(f"job_{self.choices.of(3)}", fence)
        await self._published(Author(self._one(TENANTS), "service", producer))

    async def _published(self, author: Author) -> None:
        digests = {self._one(DIGESTS), self._one(DIGESTS)}
        entries = [NewEntry(f"{digest[:4]}.txt", digest) for digest in digests]
        version = await self.publishing.publish(author, self._one(NAMES), entries)
        self.versions_known.append(version)

    async def _tombstone(self) -> None:
        await self._tombstoned(self._one(self.versions_known), self._one(DELAYS))

    async def _tombstoned(self, version: Version, retention: timedelta) -> None:
        await self.publishing.tombstone(
            Author(version.tenant_id, "ann"),
            version.name,
            version.number,
            authorized=True,
            retention=retention,
            reason="wrong",
        )

    async def _restore(self) -> None:
        version = self._one(self.versions_known)
        author = Author(version.tenant_id, "ann")
        await self.publishing.restore(author, version.name, version.number)

    async def _publish_draft(self) -> None:
        version = self._one(self.versions_known)
        await self.publishing.publish_draft(version.tenant_id, "ann", version.name, version.number)

    async def _start_job(self) -> None:
        """Held first, then created: the order that the API keeps."""
        job_id, digest, tenant_id = f"run_{self.jobs}", self._one(DIGESTS), self._one(TENANTS)
        self.jobs += 1
        await self.reading.hold(job_id, tenant_id, [str(BlobUri(digest))])
        self.ledger.reads[job_id] = digest
        self.ledger.ended[job_id] = None

    async def _end_job(self) -> None:
        running = [job_id for job_id, at in self.ledger.ended.items() if at is None]
        if running:
            self.ledger.ended[self._one(running)] = self.now


async def _forgiving(act: Act) -> None:
    """A refusal is an answer; whatever else is raised is a fault."""
    with suppress(ArtifactsError):
        await act


async def _chunks(content: bytes) -> AsyncIterator[bytes]:
    yield content
