"""Sessions that bring content."""

from datetime import timedelta
from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import Response

from lucius_artifacts.errors import Refused
from lucius_artifacts.model import Upload
from lucius_artifacts.states import UploadState
from lucius_orchestrator.api.access import caller_of
from lucius_orchestrator.api.answers import json_response
from lucius_orchestrator.api.artifacts.access import ArtifactAccess, body_of, check_tenant
from lucius_orchestrator.api.artifacts.shapes import NewUpload, PartNumbers, Proof
from lucius_orchestrator.api.artifacts.views import part_view, progress_view, upload_view
from lucius_orchestrator.api.parameters import UploadId
from lucius_orchestrator.api.parts import ApiParts
from lucius_orchestrator.api.paths import upload_path
from lucius_orchestrator.api.problems import waiting

SECRET = {"cache-control": "no-store"}
"""Of answers that hold an address which is its own credential."""


class Uploads:
    def __init__(self, parts: ApiParts, access: ArtifactAccess) -> None:
        self._access = access
        self._patience = parts.limits.verification_patience
        self._retry_after = parts.limits.retry_after

    async def initiate(self, request: Request) -> Response:
        asked = await body_of(request, NewUpload)
        check_tenant(request, asked.tenant_id)
        upload = await self._access.artifacts.uploads.initiate(
            asked.tenant_id, caller_of(request).name, asked.digest, asked.length, asked.part_size
        )
        headers = {"location": upload_path(upload.upload_id), **SECRET}
        return json_response(upload_view(upload), HTTPStatus.CREATED, headers)

    async def read(self, request: Request, upload_id: UploadId) -> Response:
        upload = await self._access.upload(request, upload_id)
        uploads = self._access.artifacts.uploads
        return _shown(progress_view(await uploads.progress(upload.tenant_id, upload_id)))

    async def sign(self, request: Request, upload_id: UploadId) -> Response:
        upload = await self._access.upload(request, upload_id)
        numbers = (await body_of(request, PartNumbers)).parts
        uploads = self._access.artifacts.uploads
        parts = await uploads.sign_parts(upload.tenant_id, upload_id, numbers)
        return _shown({"parts": [part_view(upload, part) for part in parts]})

    async def dedupe(self, request: Request, upload_id: UploadId) -> Response:
        upload = await self._access.upload(request, upload_id)
        proof = (await body_of(request, Proof)).proof
        verifications = self._access.artifacts.verifications
        return _shown(upload_view(await verifications.dedupe(upload.tenant_id, upload_id, proof)))

    async def complete(self, request: Request, upload_id: UploadId) -> Response:
        """Verification that takes longer than a request should goes on; ask again."""
        upload = await self._access.upload(request, upload_id)
        if upload.state is not UploadState.ABORTED:
            verifications = self._access.artifacts.verifications
            upload = await verifications.complete(upload.tenant_id, upload_id, self._patience)
        return _completed(upload, self._retry_after)

    async def abort(self, request: Request, upload_id: UploadId) -> Response:
        upload = await self._access.upload(request, upload_id)
        uploads = self._access.artifacts.uploads
        actor = caller_of(request).name
        return _shown(upload_view(await uploads.abort(upload.tenant_id, upload_id, actor)))


def _completed(upload: Upload, retry_after: timedelta) -> Response:
    if upload.state is UploadState.ABORTED:
        raise Refused(
            f"upload {upload.upload_id} was aborted: {upload.reason}; begin a new one with what is"
            " to be stored"
        )
    if upload.state is UploadState.COMMITTED:
        return _shown(upload_view(upload))
    return json_response(upload_view(upload), HTTPStatus.ACCEPTED, SECRET | waiting(retry_after))


def _shown(view: dict[str, object]) -> Response:
    return json_response(view, headers=SECRET)
