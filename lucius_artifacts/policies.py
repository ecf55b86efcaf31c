"""Policies: everybody may publish, or a service that the operator runs is asked."""

import asyncio
import json
from datetime import timedelta
from typing import Any, Self

import httpx

from lucius_artifacts.errors import Unavailable
from lucius_artifacts.model import Version
from lucius_artifacts.ports.policy import Allow, Quarantine

_ANSWER_LIMIT = 64 * 1024
_REASON_LIMIT = 1000


class AllowAll:
    async def judge(self, version: Version) -> Allow | Quarantine:  # noqa: ARG002 - any version
        return Allow()

    async def close(self) -> None:
        """Nothing is held."""


class PolicyService:
    """A description of the version is posted to one address, which answers
    `{"verdict": "allow"}`, or `{"verdict": "quarantine", "reason": "..."}`. Any other answer, and
    none in time, is `Unavailable`: then nothing is published. Close it once."""

    def __init__(self, url: str, timeout: timedelta = timedelta(seconds=10)) -> None:
        self._url = url
        self._seconds = timeout.total_seconds()
        self._client = httpx.AsyncClient(timeout=self._seconds, headers={"User-Agent": "lucius"})

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def judge(self, version: Version) -> Allow | Quarantine:
        try:
            async with asyncio.timeout(self._seconds):
                answer = json.loads(await self._ask(described(version)))
        except (httpx.HTTPError, TimeoutError, ValueError, RecursionError) as error:
            raise _unavailable(type(error).__name__) from error
        return _verdict(answer)

    async def close(self) -> None:
        await self._client.aclose()

    async def _ask(self, body: dict[str, Any]) -> bytes:
        asking = self._client.stream("POST", self._url, json=body)
        async with asking as response:
            if response.status_code != httpx.codes.OK:
                raise _unavailable(f"it answered {response.status_code}")
            text = bytearray()
            async for chunk in response.aiter_bytes():
                text += chunk
                if len(text) > _ANSWER_LIMIT:
                    raise _unavailable("its answer is too long")
        return bytes(text)


def described(version: Version) -> dict[str, Any]:
    """What a policy is told. A version that is to be published for the first time has no number."""
    producer = version.producer
    return {
        "tenant_id": version.tenant_id,
        "name": version.name,
        "version": version.number or None,
        "state": version.state,
        "created_by": version.created_by,
        "jobId": None if producer is None else producer.job_id,
        "entries": [
            {
                "path": entry.path,
                "digest": entry.digest,
                "length": entry.length,
                "media_type": entry.media_type,
            }
            for entry in version.entries
        ],
    }


def _verdict(answer: Any) -> Allow | Quarantine:
    match answer:
        case {"verdict": "allow"}:
            return Allow()
        case {"verdict": "quarantine", **said}:
            return Quarantine(_reason(said.get("reason")))
    raise _unavailable("its answer is no verdict")


def _reason(said: Any) -> str:
    """In one line, of characters that can be stored."""
    text = said[:_REASON_LIMIT] if isinstance(said, str) else ""
    plain = "".join(character if character.isprintable() else " " for character in text)
    return plain.strip() or "the policy gives no reason"


def _unavailable(why: str) -> Unavailable:
    return Unavailable(f"the policy cannot be asked: {why}")
