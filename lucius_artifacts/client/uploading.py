"""An upload, from a file to verified content.

    measure ── session ─┬─ proof: the content is known ─────────────────────────── committed
                        └─ parts ── complete ─┬─ parts are missing: bring them      │
                                              ├─ still being verified: ask again ───┘
                                              └─ other bytes than were announced: NotTaken

A session that was remembered is asked which parts it has, and only the others are brought. One that
is over is replaced by a new one, once.
"""

from dataclasses import dataclass

from lucius_artifacts.client.answers import ABORTED, COMMITTED, INITIATED, PENDING, Session
from lucius_artifacts.client.api import Api, Completion
from lucius_artifacts.client.errors import (
    Conflict,
    ContentChanged,
    Gone,
    NotFound,
    NotTaken,
    Unavailable,
)
from lucius_artifacts.client.parts import Parts, Queue, SessionOver
from lucius_artifacts.client.patience import Patience
from lucius_artifacts.client.progress import Meter, Phase, Progress, untold
from lucius_artifacts.client.resuming import Remembered, ResumeFile
from lucius_artifacts.client.sources import FileSource, Source, proof_of
from lucius_artifacts.client.storage import Storage
from lucius_artifacts.names import BlobUri

PROOF_FROM = 1024 * 1024
"""Bytes. A proof costs a reading of the content, here and there; smaller content is sooner sent."""
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Uploaded:
    """`uri` names the content by its digest, for the tenant that has brought it."""

    uri: str
    digest: str
    length: int


@dataclass(frozen=True, slots=True)
class UploadOptions:
    """`resume` keeps what another process needs to go on with the upload of a file; without `prove`
    nobody asks whether the server has the content already."""

    tenant_id: str | None = None
    part_size: int | None = None
    progress: Progress = untold
    resume: ResumeFile | None = None
    prove: bool = True


class Uploader:
    """One upload of one source."""

    def __init__(
        self,
        api: Api,
        storage: Storage,
        source: Source,
        options: UploadOptions,
        patience: Patience,
        parallel: int,
    ) -> None:
        self._api = api
        self._storage = storage
        self._source = source
        self._options = options
        self._patience = patience
        self._parallel = parallel

    def run(self) -> Uploaded:
        session = self._resumed() or self._begun()
        try:
            session = self._finished(session)
        except SessionOver:
            session = self._finished_anew()
        self._forget()
        return Uploaded(str(BlobUri(session.digest)), session.digest, session.length)

    def _finished_anew(self) -> Session:
        self._forget()
        try:
            return self._finished(self._begun())
        except SessionOver as error:
            self._forget()
            raise NotTaken(self._source.name, "the server ended the session") from error

    def _resumed(self) -> Session | None:
        """The session that was remembered, if the file is what it was and the server knows it."""
        resume, source = self._options.resume, self._source
        remembered = None if resume is None else resume.read()
        if remembered is None or not isinstance(source, FileSource):
            return None
        if source.stamp() != remembered.stamp:
            return None
        try:
            session = self._api.upload(remembered.upload_id)
        except (Gone, NotFound):
            return None
        if session.state == ABORTED or session.digest != remembered.digest:
            return None
        source.measured_as = remembered.stamp
        return session

    def _begun(self) -> Session:
        meter = self._meter(Phase.READING, self._source.size)
        digest, length = self._source.measure(meter.count)
        options = self._options
        session = self._api.initiate(options.tenant_id, digest, length, options.part_size)
        self._remember(session)
        return session

    def _proved(self, session: Session) -> Session:
        """Committed, if the server has the content already."""
        meter = self._meter(Phase.COMPARING, session.length)
        try:
            return self._api.dedupe(session, proof_of(self._source, session.challenge, meter.count))
        except (Conflict, Unavailable):
            return session

    def _finished(self, session: Session) -> Session:
        if session.state == INITIATED and self._options.prove and session.length >= PROOF_FROM:
            session = self._proved(session)
        for _ in range(_ROUNDS):
            if session.state == COMMITTED:
                return session
            if session.state != PENDING:
                self._bring(session)
            session = self._completed(session)
        raise SessionOver

    def _bring(self, session: Session) -> None:
        missing = session.missing
        if session.state != INITIATED and not missing:
            return
        queue = Queue(self._api, session.upload_id, missing)
        if not missing:
            queue.sign([])  # content without bytes has no parts, and still must be begun
        there = session.length - sum(map(session.size_of, missing))
        meter = self._meter(Phase.UPLOADING, session.length, there)
        parts = Parts(self._storage, queue, session, self._source, meter, self._patience)
        parts.bring(min(self._parallel, len(missing)))

    def _completed(self, session: Session) -> Session:
        """Committed, or with parts that are still to be brought."""
        try:
            completion = self._api.complete(session.upload_id)
            while completion.wait is not None:
                completion = self._asked_again(completion)
            session = completion.session
        except Conflict:
            session = self._looked_at(session)
        except (Gone, NotFound) as error:
            raise SessionOver from error
        if session.state == ABORTED:
            self._forget()
            raise self._refusal(session)
        return session

    def _asked_again(self, completion: Completion) -> Completion:
        session = completion.session
        self._meter(Phase.VERIFYING, session.length, session.length)
        self._patience.pause(completion.wait or 0.0, None)
        return self._api.complete(session.upload_id)

    def _looked_at(self, session: Session) -> Session:
        """Why it cannot be completed. One that misses nothing and is not aborted has expired."""
        found = self._api.upload(session.upload_id)
        if found.state in (ABORTED, COMMITTED) or found.missing:
            return found
        raise SessionOver

    def _refusal(self, session: Session) -> ContentChanged | NotTaken:
        reason = session.reason or "the server does not say why"
        if self._source.has_changed():
            return ContentChanged(self._source.name, reason)
        return NotTaken(self._source.name, reason)

    def _meter(self, phase: Phase, total: int, done: int = 0) -> Meter:
        return Meter(self._options.progress, phase, total, done)

    def _remember(self, session: Session) -> None:
        source, resume = self._source, self._options.resume
        if resume is None or not isinstance(source, FileSource):
            return
        path, (size, modified) = str(source.path.resolve()), source.measured_as
        resume.write(Remembered(session.upload_id, path, size, modified, session.digest))

    def _forget(self) -> None:
        if self._options.resume is not None:
            self._options.resume.forget()
