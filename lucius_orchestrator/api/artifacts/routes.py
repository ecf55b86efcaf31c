"""What serves the operations on artifacts."""

from collections.abc import Callable
from typing import Any

from starlette.types import ASGIApp

from lucius_orchestrator.api.artifacts import operations as ops
from lucius_orchestrator.api.artifacts.access import ArtifactAccess
from lucius_orchestrator.api.artifacts.objects import GetObject, PutPart
from lucius_orchestrator.api.artifacts.reading import Contents
from lucius_orchestrator.api.artifacts.runs import Runs
from lucius_orchestrator.api.artifacts.uploads import Uploads
from lucius_orchestrator.api.artifacts.versions import Versions
from lucius_orchestrator.api.operation import Operation
from lucius_orchestrator.api.parts import ApiParts


def artifact_routes(parts: ApiParts) -> dict[Operation, Callable[..., Any]]:
    access = ArtifactAccess(parts)
    uploads, versions = Uploads(parts, access), Versions(parts, access)
    return {
        ops.BEGIN_UPLOAD: uploads.initiate,
        ops.SIGN_PARTS: uploads.sign,
        ops.DEDUPE_UPLOAD: uploads.dedupe,
        ops.COMPLETE_UPLOAD: uploads.complete,
        ops.ABORT_UPLOAD: uploads.abort,
        ops.READ_UPLOAD: uploads.read,
        ops.READ_CONTENT: Contents(access).read,
        ops.RUN_COLLECTION: Runs(access).run,
        ops.LIST_ARTIFACTS: versions.artifacts,
        ops.PUBLISH_DRAFT: versions.publish_draft,
        ops.TOMBSTONE_VERSION: versions.tombstone,
        ops.RESTORE_VERSION: versions.restore,
        ops.READ_VERSION: versions.read,
        ops.LIST_VERSIONS: versions.list,
        ops.PUBLISH_VERSION: versions.publish,
    }


def object_endpoints(parts: ApiParts) -> dict[Operation, ASGIApp]:
    access = ArtifactAccess(parts)
    return {ops.PUT_PART: PutPart(parts, access), ops.READ_OBJECT: GetObject(parts, access)}
