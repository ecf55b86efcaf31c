"""What the service is there for: it writes a greeting for the name that it reads."""

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

import aiohttp

from tests.conform.broken_services.directives import Directive
from tests.conform.broken_services.wording import FAILED_FINAL, FAILED_RETRY, SUCCEEDED, Outcome

_READING = aiohttp.ClientTimeout(total=None)


class StepFailed(Exception):
    """The work ended with an outcome that is no success."""

    def __init__(self, status: str, code: str, message: str) -> None:
        super().__init__(message)
        self.outcome = Outcome(status, code=code, message=message)


class Work:
    """`http` reads refs."""

    http: aiohttp.ClientSession
    root: Path

    async def work(self, directive: Directive, epoch: int) -> Outcome:
        """Whatever happens in it is an outcome."""
        try:
            ending = self.ending_of(directive.payload)
            text = await self.read_input(directive)
            artifact = self.write(directive, self.folder(directive, epoch), text + ending)
        except Exception as error:
            return self.failed(error)
        return Outcome(SUCCEEDED, [artifact])

    def ending_of(self, payload: Mapping[str, Any]) -> str:
        """`StepFailed` for a payload that the step does not know."""
        ending = payload.get("ending", "")
        if not payload.keys() <= {"ending"} or not isinstance(ending, str):
            raise self.invalid_payload()
        return ending

    def invalid_payload(self) -> StepFailed:
        return StepFailed(FAILED_FINAL, "PAYLOAD_INVALID", "ending must be a text, alone")

    async def read_input(self, directive: Directive) -> str:
        async with self.http.get(directive.input_uri, timeout=_READING) as response:
            if response.status == HTTPStatus.NOT_FOUND:
                raise StepFailed(FAILED_FINAL, "INPUT_NOT_FOUND", "there is no input")
            response.raise_for_status()
            return (await self.content_of(response)).decode()

    async def content_of(self, response: aiohttp.ClientResponse) -> bytes:
        return await response.read()

    def folder(self, directive: Directive, epoch: int) -> Path:
        """No two runs share one."""
        folder = directive.workspace / directive.step_type.lower() / str(directive.attempt_no)
        return folder / f"~{epoch}" if epoch > 1 else folder

    def write(self, _directive: Directive, folder: Path, text: str) -> dict[str, Any]:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "greeting.txt"
        path.write_bytes(text.encode())
        return self.artifact(path, text)

    def artifact(self, path: Path, text: str) -> dict[str, Any]:
        content = text.encode()
        return {
            "name": path.name,
            "uri": path.as_uri(),
            "sha256": hashlib.sha256(content).hexdigest(),
            "size": len(content),
            "media_type": "text/plain",
        }

    def failed(self, error: Exception) -> Outcome:
        if isinstance(error, StepFailed):
            return error.outcome
        if isinstance(error, (aiohttp.ClientError, TimeoutError, OSError)):
            return Outcome(FAILED_RETRY, code="STORAGE_UNAVAILABLE", message=repr(error))
        return Outcome(FAILED_FINAL, code="INTERNAL", message=repr(error))
