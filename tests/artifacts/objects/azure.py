"""An account as its network and its other users make it look."""

from typing import Any

import httpx
from azure.core.pipeline import PipelineResponse

from lucius_artifacts.objects.azure_blob import AzureBlobObjects
from lucius_artifacts.ports.objects import SignedRequest
from tests.artifacts.objects.stages import KEY, soon, web
from tests.azure_proxy import Asked


class CopyStatus:
    """What is told of copies to those who look, each time the next one; then the truth."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def __call__(self, answer: PipelineResponse[Any, Any]) -> None:
        headers = answer.http_response.headers
        is_look = answer.http_request.method == "HEAD" and "x-ms-copy-status" in headers
        if is_look and self.told:
            headers["x-ms-copy-status"] = self.told.pop(0)


class Holder:
    """Somebody with the address of a part, who does with it what else it allows."""

    def __init__(self, address: SignedRequest) -> None:
        self.blob, _, query = address.url.partition("?")
        self._signature = "&".join(query.split("&")[2:])  # without what makes it one of a block

    async def ask(
        self, method: str, query: str = "", content: bytes = b"", **headers: str
    ) -> httpx.Response:
        url = f"{self.blob}?{query}{'&' if query else ''}{self._signature}"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with web() as client:
            return await client.request(method, url, content=content, headers=named)

    async def put_blob(self, content: bytes, kind: str = "BlockBlob") -> httpx.Response:
        return await self.ask("PUT", "", content, x_ms_blob_type=kind)

    async def take_it_for_ever(self) -> httpx.Response:
        return await self.ask(
            "PUT", "comp=lease", x_ms_lease_action="acquire", x_ms_lease_duration="-1"
        )

    async def break_lease(self) -> httpx.Response:
        return await self.ask(
            "PUT", "comp=lease", x_ms_lease_action="break", x_ms_lease_break_period="0"
        )


async def holder(objects: AzureBlobObjects) -> Holder:
    return Holder(await objects.sign_part(KEY, 1, 3, soon()))


def is_copy(asked: Asked) -> bool:
    return asked.method == "PUT" and "/objects/" in asked.path and "?" not in asked.path


async def names_in(objects: AzureBlobObjects) -> list[str]:
    """Everything in the container, also what is a snapshot or blocks alone."""
    listed = objects._container.list_blobs(include=["uncommittedblobs", "snapshots"])
    return [blob.name async for blob in listed]
