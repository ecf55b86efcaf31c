"""Every storage behind one face, and the world outside that redeems its addresses."""

import re
import ssl
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

import httpx

import lucius_artifacts.objects as adapters
from lucius_artifacts.errors import ArtifactsError
from lucius_artifacts.objects.disposition import attachment
from lucius_artifacts.objects.files import FileObjects
from lucius_artifacts.objects.memory import MemoryObjects
from lucius_artifacts.ports.objects import Objects, SignedRequest
from lucius_artifacts.signing import Offered, UrlSigner
from lucius_azure.storage import StorageAccount, open_blobs
from lucius_settings.secret import Secret
from tests.names import unique
from tests.runner.deadlines import DEADLINE

STAGES = ("memory", "files", "azure_blob")
"""The modules under `lucius_artifacts/objects` whose adapters are tested."""

KEY = "ob_1"
BASE_URL = "https://artifacts.example"
_NAMES = {"memory": "MemoryObjects", "files": "FileObjects", "azure_blob": "AzureBlobObjects"}
_OBJECTS = re.compile(r"^class (\w+Objects)\b", re.MULTILINE)
_PATH = re.compile(r"/v1/artifacts/objects/(?P<key>[^/]+)(?:/parts/(?P<number>[0-9]+))?")


class Fetched(NamedTuple):
    content: bytes
    media_type: str
    disposition: str


class Stage(ABC):
    """One storage; every further `open` is what another process would have."""

    objects: Objects
    knows_the_part = True
    """An address is for one part, of one length."""
    tells_the_late = True
    """Who puts a part to what is no place any more is told."""
    streams = True

    async def start(self) -> None:
        self.objects = await self.open()

    async def stop(self) -> None:
        await self.objects.close()

    @abstractmethod
    async def open(self) -> Objects: ...

    @abstractmethod
    async def put(self, request: SignedRequest, content: bytes) -> bool:
        """Whether it was taken."""

    @abstractmethod
    async def get(self, request: SignedRequest) -> Fetched | None:
        """None if it was refused."""


class MemoryStage(Stage):
    streams = False

    async def open(self) -> MemoryObjects:
        known = getattr(self, "objects", None)
        return known if isinstance(known, MemoryObjects) else MemoryObjects(now)

    async def put(self, request: SignedRequest, content: bytes) -> bool:
        objects = await self.open()
        return await _is_taken(lambda: objects.redeem_put(request.url, chunks(content)))

    async def get(self, request: SignedRequest) -> Fetched | None:
        try:
            offered, content = await (await self.open()).redeem_read(request.url)
        except ArtifactsError:
            return None
        return _fetched(content, offered)


class FileStage(Stage):
    """Plays the route that its addresses lead to."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.signer = UrlSigner([b"s" * 32], now)

    async def open(self) -> FileObjects:
        return FileObjects(self.root, self.signer, BASE_URL)

    async def put(self, request: SignedRequest, content: bytes) -> bool:
        path, query = _route(request)
        key, number = path["key"], int(path["number"])

        async def redeem() -> None:
            length = self.signer.accept_part(key, number, query)
            await self.objects.put_part(key, number, length, chunks(content))

        return await _is_taken(redeem)

    async def get(self, request: SignedRequest) -> Fetched | None:
        path, query = _route(request)
        try:
            offered = self.signer.accept_read(path["key"], query)
            return _fetched(await content_of(self.objects, path["key"]), offered)
        except ArtifactsError:
            return None


class AzureBlobStage(Stage):
    knows_the_part = False
    tells_the_late = False

    def __init__(self, connection: str) -> None:
        self._account = StorageAccount(Secret(connection))
        self.container = unique("objects")

    async def start(self) -> None:
        from lucius_artifacts.objects.azure_blob import AzureBlobObjects

        self.objects = await AzureBlobObjects.open(self._account, self.container)

    async def open(self) -> Objects:
        from lucius_artifacts.objects.azure_blob import AzureBlobObjects

        return AzureBlobObjects(open_blobs(self._account, retry_total=0), self.container)

    async def put(self, request: SignedRequest, content: bytes) -> bool:
        async with web() as client:
            answer = await client.put(request.url, content=content, headers=dict(request.headers))
        return answer.is_success

    async def get(self, request: SignedRequest) -> Fetched | None:
        async with web() as client:
            answer = await client.get(request.url, headers=dict(request.headers))
        if answer.is_error:
            return None
        said = answer.headers
        return Fetched(answer.content, said["Content-Type"], said["Content-Disposition"])


def web() -> httpx.AsyncClient:
    """Without the certificates of the world, which take a while to load: nothing here is TLS."""
    return httpx.AsyncClient(verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), timeout=DEADLINE)


def now() -> datetime:
    """The service compares addresses with its own clock."""
    return datetime.now(UTC)


def soon() -> datetime:
    return now() + timedelta(hours=1)


async def chunks(content: bytes, size: int = 64 * 1024) -> AsyncIterator[bytes]:
    for start in range(0, len(content), size):
        yield content[start : start + size]


async def put(objects: Objects, number: int, content: bytes, key: str = KEY) -> None:
    await objects.put_part(key, number, len(content), chunks(content))


async def frozen(objects: Objects, *parts: bytes, key: str = KEY) -> bytes:
    """An object of these parts; its content."""
    await objects.begin(key)
    for number, part in enumerate(parts, start=1):
        await put(objects, number, part, key)
    await objects.freeze(key, len(parts))
    return b"".join(parts)


async def content_of(
    objects: Objects, key: str = KEY, start: int = 0, end: int | None = None
) -> bytes:
    return b"".join([chunk async for chunk in objects.read(key, start, end)])


def adapters_in_the_tree() -> set[str]:
    """Names of all classes `…Objects` under `lucius_artifacts/objects`."""
    files = Path(adapters.__file__).parent.rglob("*.py")
    return {name for path in files for name in _OBJECTS.findall(path.read_text(encoding="utf-8"))}


def adapters_in_the_suite() -> set[str]:
    modules = {name: import_module(f"{adapters.__name__}.{name}") for name in STAGES}
    return {getattr(module, _NAMES[name]).__name__ for name, module in modules.items()}


async def _is_taken(redeem: Callable[[], Awaitable[None]]) -> bool:
    try:
        await redeem()
    except ArtifactsError:
        return False
    return True


def _route(request: SignedRequest) -> tuple[dict[str, str], dict[str, str]]:
    parts = urlsplit(request.url)
    assert request.url.startswith(BASE_URL)
    found = _PATH.fullmatch(parts.path)
    assert found is not None
    return found.groupdict(), dict(parse_qsl(parts.query, strict_parsing=True))


def _fetched(content: bytes, offered: Offered) -> Fetched:
    return Fetched(content, offered.media_type, attachment(offered.file_name))
