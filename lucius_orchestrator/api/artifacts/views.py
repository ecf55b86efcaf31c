"""Uploads, versions and collections as clients read them."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from lucius_artifacts.collection.explaining import Candidate
from lucius_artifacts.collection.schedule import Report
from lucius_artifacts.model import Entry, Producer, Upload, Version
from lucius_artifacts.names import BlobUri, FileUri
from lucius_artifacts.ports.catalogue import ArtifactSummary
from lucius_artifacts.ports.objects import SignedRequest
from lucius_artifacts.reading import Located
from lucius_artifacts.states import UploadState
from lucius_artifacts.uploading import Part, Progress
from lucius_orchestrator.api.paths import upload_links

View = dict[str, Any]


def upload_view(upload: Upload) -> View:
    is_committed = upload.state is UploadState.COMMITTED
    return {
        "upload_id": upload.upload_id,
        "tenant_id": upload.tenant_id,
        "state": upload.state,
        "digest": upload.digest,
        "length": upload.length,
        "part_size": upload.part_size,
        "part_count": upload.part_count,
        "challenge": upload.challenge,
        "created_at": upload.created_at,
        "expires_at": upload.expires_at,
        "reason": upload.reason,
        "uri": str(BlobUri(upload.digest)) if is_committed else None,
        "links": upload_links(upload.upload_id),
    }


def progress_view(progress: Progress) -> View:
    received = [list(each) for each in ranges(progress.upload, progress.received)]
    return {**upload_view(progress.upload), "received": received}


def ranges(upload: Upload, sizes: Mapping[int, int]) -> Iterator[tuple[int, int]]:
    """First and last number of each run of parts that are there with the size that they should
    have."""
    begin: int | None = None
    for number in range(1, upload.part_count + 2):
        is_named = number <= upload.part_count
        if is_named and sizes.get(number) == upload.size_of_part(number):
            begin = begin or number
        elif begin is not None:
            yield begin, number - 1
            begin = None


def part_view(upload: Upload, part: Part) -> View:
    length = upload.size_of_part(part.number)
    return {"number": part.number, "length": length, **request_view(part.request)}


def request_view(request: SignedRequest) -> View:
    return {
        "method": request.method,
        "url": request.url,
        "headers": dict(request.headers),
        "expires_at": request.expires_at,
    }


def content_view(uri: str, located: Located, request: SignedRequest) -> View:
    return {
        "uri": uri,
        "digest": located.blob.digest,
        "length": located.blob.length,
        "media_type": located.media_type,
        "file_name": located.file_name,
        **request_view(request),
    }


def artifact_view(summary: ArtifactSummary) -> View:
    return {
        "name": summary.name,
        "latest": summary.latest,
        "published": summary.published,
        "changed_at": summary.changed_at,
    }


def version_view(version: Version) -> View:
    return {
        "tenant_id": version.tenant_id,
        "name": version.name,
        "version": version.number,
        "state": version.state,
        "entries": [_entry_view(version, entry) for entry in version.entries],
        "created_at": version.created_at,
        "created_by": version.created_by,
        "published_at": version.published_at,
        "tombstoned_at": version.tombstoned_at,
        "retained_until": version.retained_until,
        "reason": version.reason,
        "producer": None if version.producer is None else _producer_view(version.producer),
    }


def _entry_view(version: Version, entry: Entry) -> View:
    return {
        "path": entry.path,
        "digest": entry.digest,
        "length": entry.length,
        "media_type": entry.media_type,
        "uri": str(FileUri(version.name, version.number, entry.path)),
    }


def _producer_view(producer: Producer) -> View:
    fence = producer.fence
    return {
        "jobId": producer.job_id,
        "stepId": fence.step_id,
        "attempt_no": fence.attempt_no,
        "epoch": fence.epoch,
    }


def report_view(report: Report) -> View:
    return {"report": asdict(report), "candidates": None, "more": False}


def candidates_view(candidates: list[Candidate], more: bool) -> View:
    found = [asdict(candidate) for candidate in candidates]
    return {"report": None, "candidates": found, "more": more}
