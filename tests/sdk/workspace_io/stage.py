"""What the tests of the workspace share, and the storages that they are run on."""

import hashlib
import importlib
import inspect
import pkgutil
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ClassVar, NamedTuple, Protocol

import boto3
import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient
from botocore.config import Config

import lucius_sdk.workspace_io
from lucius_contract.documents import Artifact
from lucius_contract.errors import ERRORS, ErrorCode
from lucius_sdk.error_model import NonRetryableError, RetryableError
from lucius_sdk.workspace_io import BlobStorage, Fence, LocalStorage, S3Storage, Storage
from lucius_sdk.workspace_io.blob.publishing import FENCE
from lucius_sdk.workspace_io.fence_file import fence_path
from lucius_sdk.workspace_io.s3.publishing import FENCE as S3_FENCE
from tests.sdk.workspace_io.reopening import blob_storage, s3_storage

WORKSPACE = "lucius/acme/job_1/"
Uri = Callable[[str], str]
Folders = tuple[str, ...]
"""As uris."""


class StoredFence(NamedTuple):
    """As it lies in a file, and in metadata."""

    line: bytes
    header: str


UNREADABLE = StoredFence(b"not ours\n", "not ours")
OF_AN_EARLIER_RELEASE = StoredFence(
    b'{"job_id": "job_2", "step_id": "step_03", "attempt_no": 2, "epoch": 1}\n',
    "job_2/step_03/2/1",
)


class Stage(Protocol):
    """A storage, and the world behind it as others see it. Paths are below the root."""

    root: str
    """As a uri."""
    examples: int
    """That a property is tried with."""

    @property
    def storage(self) -> Storage: ...

    def uri(self, path: str) -> str: ...

    def reaching(self, readable: Folders = (), writable: Folders = ()) -> Storage:
        """Another one on the same root, which reads and publishes below these as well."""

    def folder(self, name: str) -> str:
        """The uri of a new folder beside the root."""

    def put(self, uri: str, content: bytes) -> None:
        """By somebody who knows nothing of fences."""

    def visible(self) -> dict[str, bytes]:
        """Every object below the root, but ours."""

    def unfinished(self) -> list[str]:
        """What should not be there any more."""

    def is_untouched(self) -> bool:
        """Not even begun to be written to."""

    def replace_fence(self, path: str, fence: StoredFence) -> None:
        """By another, or by what is none."""

    def lose_root(self) -> None: ...

    def prepare(self) -> None: ...

    def words(self) -> list[str]:
        """What `reopened` needs in another process."""


class LocalStage:
    kind: ClassVar[type[Storage]] = LocalStorage
    examples = 100

    def __init__(self, folder: Path) -> None:
        self._world = folder
        self.path = folder / "root"
        self.path.mkdir()
        self.root = self.path.as_uri()
        self.storage = LocalStorage(self.path)

    def uri(self, path: str) -> str:
        return f"{self.root}/{path}"

    def reaching(self, readable: Folders = (), writable: Folders = ()) -> Storage:
        return LocalStorage(self.path, _paths(readable), _paths(writable))

    def folder(self, name: str) -> str:
        (self._world / name).mkdir()
        return (self._world / name).as_uri()

    def put(self, uri: str, content: bytes) -> None:
        path = Path(uri.removeprefix("file://"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def visible(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self.path)): path.read_bytes()
            for path in sorted(self.path.rglob("*"))
            if path.is_file() and not path.name.startswith(".lucius-")
        }

    def unfinished(self) -> list[str]:
        return [str(path) for path in self.path.rglob(".lucius-*.part")]

    def is_untouched(self) -> bool:
        return list(self.path.iterdir()) == []

    def replace_fence(self, path: str, fence: StoredFence) -> None:
        fence_path(self.path / path).write_bytes(fence.line)

    def lose_root(self) -> None:
        shutil.rmtree(self.path)

    def prepare(self) -> None:
        self.storage.prepare()

    def words(self) -> list[str]:
        return [self.root, ""]


class BlobStage:
    """In a container of its own, with `root/` for its root."""

    kind: ClassVar[type[Storage]] = BlobStorage
    examples = 15

    def __init__(self, connection: str) -> None:
        self._connection = connection
        self.service = BlobServiceClient.from_connection_string(
            connection, api_version="2025-11-05"
        )
        self.container: ContainerClient = self.service.get_container_client(f"c{uuid.uuid4().hex}")
        self.root = f"az://{self.container.container_name}/root"
        self._opened: list[BlobStorage] = []
        self.storage = self._open()
        self.storage.prepare()

    def close(self) -> None:
        for storage in self._opened:
            storage.close()
        self.service.close()

    def uri(self, path: str) -> str:
        return f"{self.root}/{path}"

    def reaching(self, readable: Folders = (), writable: Folders = ()) -> Storage:
        return self._open(readable, writable)

    def folder(self, name: str) -> str:
        return f"az://{self.container.container_name}/{name}"

    def put(self, uri: str, content: bytes) -> None:
        name = uri.removeprefix(self.folder(""))
        self.container.upload_blob(name, content, overwrite=True)

    def visible(self) -> dict[str, bytes]:
        names = list(self.container.list_blob_names(name_starts_with="root/"))
        return {
            name.removeprefix("root/"): self.container.download_blob(name).readall()
            for name in names
            if not name.rpartition("/")[2].startswith(".lucius-")
        }

    def unfinished(self) -> list[str]:
        return [name for name in self.container.list_blob_names() if ".lucius-" in name]

    def is_untouched(self) -> bool:
        return list(self.container.list_blobs(include=["uncommittedblobs"])) == []

    def replace_fence(self, path: str, fence: StoredFence) -> None:
        blob = self.container.get_blob_client(f"root/{path}")
        blob.set_blob_metadata({FENCE: fence.header})

    def lose_root(self) -> None:
        self.container.delete_container()

    def prepare(self) -> None:
        self.storage.prepare()

    def words(self) -> list[str]:
        return [self.root, self._connection]

    def _open(self, readable: Folders = (), writable: Folders = ()) -> BlobStorage:
        storage = blob_storage(self._connection, self.root, readable, writable)
        self._opened.append(storage)
        return storage


class S3Stage:
    """In a bucket of its own, with `root/` for its root."""

    kind: ClassVar[type[Storage]] = S3Storage
    examples = 15

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self.bucket = f"b{uuid.uuid4().hex}"
        self.client = boto3.session.Session().client(
            "s3", endpoint_url=endpoint, config=Config(s3={"addressing_style": "path"})
        )
        self.root = f"s3://{self.bucket}/root"
        self._opened: list[S3Storage] = []
        self.storage = self._open()
        self.prepare()

    def close(self) -> None:
        for storage in self._opened:
            storage.close()
        self.client.close()

    def uri(self, path: str) -> str:
        return f"{self.root}/{path}"

    def reaching(self, readable: Folders = (), writable: Folders = ()) -> Storage:
        return self._open(readable, writable)

    def folder(self, name: str) -> str:
        return f"s3://{self.bucket}/{name}"

    def put(self, uri: str, content: bytes) -> None:
        key = uri.removeprefix(self.folder(""))
        self.client.put_object(Bucket=self.bucket, Key=key, Body=content)

    def keys(self) -> list[str]:
        found = self.client.list_objects_v2(Bucket=self.bucket).get("Contents", [])
        return [str(each["Key"]) for each in found]

    def visible(self) -> dict[str, bytes]:
        return {
            key.removeprefix("root/"): self.client.get_object(Bucket=self.bucket, Key=key)[
                "Body"
            ].read()
            for key in self.keys()
            if key.startswith("root/")
        }

    def unfinished(self) -> list[str]:
        found = self.client.list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])
        return [str(each["Key"]) for each in found]

    def is_untouched(self) -> bool:
        return self.keys() == self.unfinished() == []

    def replace_fence(self, path: str, fence: StoredFence) -> None:
        key = f"root/{path}"
        self.client.copy_object(
            Bucket=self.bucket,
            Key=key,
            CopySource={"Bucket": self.bucket, "Key": key},
            Metadata={S3_FENCE: fence.header},
            MetadataDirective="REPLACE",
        )

    def lose_root(self) -> None:
        for key in self.keys():
            self.client.delete_object(Bucket=self.bucket, Key=key)
        self.client.delete_bucket(Bucket=self.bucket)

    def prepare(self) -> None:
        """A service never makes a bucket."""
        with suppress(self.client.exceptions.BucketAlreadyOwnedByYou):
            self.client.create_bucket(
                Bucket=self.bucket,
                CreateBucketConfiguration={"LocationConstraint": "eu-central-1"},
            )

    def words(self) -> list[str]:
        return [self.root, self._endpoint]

    def _open(self, readable: Folders = (), writable: Folders = ()) -> S3Storage:
        storage = s3_storage(self._endpoint, self.root, readable, writable)
        self._opened.append(storage)
        return storage


STAGES: dict[str, type[LocalStage] | type[BlobStage] | type[S3Stage]] = {
    "local": LocalStage,
    "blob": BlobStage,
    "s3": S3Stage,
}


def _paths(folders: Folders) -> tuple[Path, ...]:
    return tuple(Path(one.removeprefix("file://")) for one in folders)


def storages_in_the_tree() -> set[str]:
    """Every class of the package with the verbs of a storage."""
    package = lucius_sdk.workspace_io
    verbs = ("of_tenant", "open_read", "create", "publish", "size_of", "check", "close")
    found = set()
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        for _, kind in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if kind is not Storage and all(hasattr(kind, verb) for verb in verbs):
                found.add(kind.__name__)
    return found


@contextmanager
def raises(code: ErrorCode, match: str | None = None) -> Iterator[None]:
    """The one kind of error that the contract has for this code."""
    kind = RetryableError if ERRORS[code].retryable else NonRetryableError
    with pytest.raises(kind, match=match) as caught:
        yield
    assert caught.value.code == code


def fence(
    attempt_no: int = 1, epoch: int = 1, job: int = 1, step: int = 3, tenant: str = "acme"
) -> Fence:
    return Fence(tenant, f"job_{job}", f"step_{step:02d}", attempt_no, epoch)


def artifact_of(content: bytes, uri: str, name: str = "output.txt") -> Artifact:
    digest = hashlib.sha256(content).hexdigest()
    return Artifact(name=name, uri=uri, sha256=digest, size=len(content), media_type="text/plain")


class Stop(Exception):
    """What a check raises in these tests."""


class Checks:
    """A `check_open` that lets `allowed` looks pass."""

    def __init__(self, allowed: int) -> None:
        self.seen = 0
        self._allowed = allowed

    def __call__(self) -> None:
        self.seen += 1
        if self.seen > self._allowed:
            raise Stop
