"""What others are told through the outbox, in the transaction that did it.

The namespace is `lucius.artifacts`; the topic is the event's type. Consumers may see an event more
than once: `event_id` tells them.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from hashlib import sha256
from typing import Any

from lucius_artifacts.model import Blob, Upload, Version
from lucius_outbox.message import Message

NAMESPACE = "lucius.artifacts"


class EventType(StrEnum):
    UPLOAD_COMMITTED = "upload.committed"
    UPLOAD_ABORTED = "upload.aborted"
    VERSION_PUBLISHED = "version.published"
    VERSION_QUARANTINED = "version.quarantined"
    VERSION_TOMBSTONED = "version.tombstoned"
    VERSION_RESTORED = "version.restored"
    BLOB_TOMBSTONED = "blob.tombstoned"
    BLOB_DELETED = "blob.deleted"


def upload_event(kind: EventType, upload: Upload, now: datetime) -> Message:
    body = {
        "upload_id": upload.upload_id,
        "tenant_id": upload.tenant_id,
        "digest": upload.digest,
        "length": upload.length,
        "reason": upload.reason,
    }
    return _message(kind, upload.upload_id, f"{kind}.{upload.upload_id}", body, now)


def version_event(kind: EventType, version: Version, now: datetime) -> Message:
    """A version may be tombstoned and restored again: each time is an event of its own."""
    subject = f"{version.name}/v{version.number}"
    body = {
        "tenant_id": version.tenant_id,
        "name": version.name,
        "version": version.number,
        "jobId": version.producer.job_id if version.producer else None,
        "reason": version.reason,
    }
    line = sha256(f"{version.tenant_id}\0{version.name}".encode()).hexdigest()
    event_id = f"{kind}.{line[:32]}.{version.number}.{_instant(now)}"
    return _message(kind, line, event_id, {**body, "subject": subject}, now)


def blob_event(kind: EventType, blob: Blob, now: datetime) -> Message:
    body = {"digest": blob.digest, "length": blob.length}
    event_id = f"{kind}.{blob.object_key}.{_instant(now)}"
    return _message(kind, blob.digest, event_id, body, now)


def _message(
    kind: EventType, line: str, event_id: str, body: Mapping[str, Any], now: datetime
) -> Message:
    payload = {"event_id": event_id, "type": kind, **body, "occurred_at": now.isoformat()}
    return Message(NAMESPACE, kind, payload, dedupe_key=event_id, ordering_key=line)


def _instant(now: datetime) -> int:
    return int(now.timestamp() * 1_000_000)
