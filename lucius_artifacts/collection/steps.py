"""The transactions of a collection. Each reads again what it decides on, so that it does not matter
what happened since its candidate was found; one that finds nothing to do (any more) says False."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta

from lucius_artifacts.decisions import blobs as decide
from lucius_artifacts.errors import Busy, Refused
from lucius_artifacts.events import EventType, blob_event
from lucius_artifacts.model import AuditRecord, Blob, Claim, Doomed, Run, RunPhase
from lucius_artifacts.ports.catalogue import Transaction

COLLECTOR = "collector"
Step = Callable[[Transaction, Blob], Awaitable[None]]


async def decided(rows: Transaction, candidate: Blob, step: Step) -> bool:
    blob = await rows.blob(candidate.digest)
    if blob is None or blob.object_key != candidate.object_key:
        return False
    try:
        await step(rows, blob)
    except Refused:
        return False
    return True


async def tombstone(rows: Transaction, blob: Blob, now: datetime, retention: timedelta) -> None:
    """`Refused` if somebody needs it since."""
    if await rows.references(blob.digest, now, 1):
        raise Refused(f"blob {blob.digest} is needed")
    blob = decide.delete_request(blob, True, now, retention)
    await rows.put_blob(blob)
    await _tell(rows, EventType.BLOB_TOMBSTONED, blob, "nobody refers to it", now)


async def elapse_retention(rows: Transaction, blob: Blob, now: datetime) -> None:
    references = await rows.references(blob.digest, now, 1)
    await rows.put_blob(decide.retention_elapsed(blob, references, now))


async def end_claim(
    rows: Transaction, candidate: Claim, now: datetime, claimed_before: datetime
) -> bool:
    """The tenant may not read the content by its digest any more, and its copy is doomed."""
    tenant_id, digest = candidate.tenant_id, candidate.digest
    claim = await rows.claim(tenant_id, digest)
    if claim is None or claim.claimed_at >= claimed_before:
        return False
    if await rows.is_referenced(tenant_id, digest, now):
        return False
    await rows.drop_claim(tenant_id, digest)
    if claim.object_key is not None:
        await rows.put_doomed(Doomed(claim.object_key, now, "its tenant does not refer to it"))
    return True


async def begin_run(rows: Transaction, run_id: str, now: datetime, lease: timedelta) -> Run:
    """`Busy` while another run is current and its lease has not run out."""
    current = await rows.current_run()
    if current is not None and now < current.until:
        raise Busy(f"run {current.run_id} collects since {current.started_at:%H:%M:%S} UTC")
    if current is not None:
        await rows.put_run(replace(current, phase=RunPhase.ABANDONED, ended_at=now))
    run = Run(run_id, RunPhase.MARKING, now, now + lease)
    await rows.put_run(run)
    return run


async def continue_run(
    rows: Transaction, run_id: str, phase: RunPhase, now: datetime, lease: timedelta
) -> Run:
    """The run, with a new lease. `Busy` if another collector has abandoned it."""
    run = await rows.run(run_id)
    if run is None or run.phase is not phase:
        raise Busy(f"run {run_id} was abandoned by another collector")
    run = replace(run, until=now + lease)
    await rows.put_run(run)
    return run


async def keep_marked(rows: Transaction, blob: Blob, run: Run, now: datetime) -> None:
    if blob.marked_by != run.run_id:
        raise Refused(f"blob {blob.digest} was not marked in run {run.run_id}")
    await rows.put_blob(decide.gc_mark(blob, now))


async def sweep(rows: Transaction, blob: Blob, run: Run, now: datetime) -> None:
    """The row goes with everybody's claims on it; its objects are doomed in the same commit."""
    references = await rows.references(blob.digest, now, 1)
    blob = decide.gc_sweep(blob, run, references, now)
    await rows.put_blob(blob)
    copies = [claim.object_key for claim in await rows.claims(blob.digest) if claim.object_key]
    await rows.drop_claims(blob.digest)
    for object_key in (blob.object_key, *copies):
        await rows.put_doomed(Doomed(object_key, now, f"deleted in run {run.run_id}"))
    await _tell(rows, EventType.BLOB_DELETED, blob, f"run {run.run_id}", now)


async def _tell(rows: Transaction, kind: EventType, blob: Blob, detail: str, now: datetime) -> None:
    subject = f"blob {blob.digest}"
    await rows.record(AuditRecord(now, COLLECTOR, None, kind, subject, detail))
    await rows.emit(blob_event(kind, blob, now))


def advanced(run: Run, phase: RunPhase, now: datetime) -> Run:
    return replace(run, phase=phase, ended_at=now if phase is RunPhase.DONE else None)
