"""Objects of the buckets that one identity reaches."""

import threading
from collections.abc import Callable, Sequence
from copy import copy
from importlib.util import find_spec
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, Self

from lucius_sdk.workspace_io.access import Access, Location, Tenant
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.names import RESERVED
from lucius_sdk.workspace_io.port import Sink, Source
from lucius_sdk.workspace_io.s3.places import SCHEME, Place, folder_place, object_place
from lucius_sdk.workspace_io.uris import as_output, refused

if TYPE_CHECKING:
    from lucius_sdk.workspace_io.s3.bucket import Buckets

_SCHEMES = frozenset({SCHEME})
WINDOW = 4 * 1024 * 1024
PART = 16 * 1024 * 1024
"""Of a large object, which has at most 10,000: 156 GiB."""
NEEDS_EXTRA = "is of S3, which needs: pip install 'lucius-sdk[s3]'"


def is_installed() -> bool:
    return find_spec("boto3") is not None


class S3Options(NamedTuple):
    """Without `endpoint`: AWS, or what the variables of AWS say."""

    endpoint: str | None = None
    part: int = PART
    window: int = WINDOW
    tries: int = 4


_DEFAULTS = S3Options()


class S3Storage:
    """The workspace below `root`; reads below the folders in `readable` too, and publishes below
    those in `writable`: all of them uris. Without `root` there is no workspace.

    The client is made when the first object is asked for, with the credentials that the machine
    offers then: environment, profile, container or instance. Buckets are never made.
    """

    def __init__(
        self,
        root: str | None,
        readable: Sequence[str] = (),
        writable: Sequence[str] = (),
        options: S3Options = _DEFAULTS,
    ) -> None:
        self._root = None if root is None else folder_place(root)
        self._access = Access(
            None if self._root is None else self._root.location,
            tuple(folder_place(folder).location for folder in readable),
            tuple(folder_place(folder).location for folder in writable),
        )
        self._client = _LazyBuckets(options)

    @property
    def schemes(self) -> frozenset[str]:
        return _SCHEMES

    def of_tenant(self, tenant: Tenant) -> Self:
        bound = copy(self)
        bound._access = self._access._replace(tenant=tenant)
        return bound

    def open_read(self, uri: str) -> BinaryIO:
        place = self._to_read(uri)
        return self._client.get().open_read(place, uri)

    def size_of(self, uri: str) -> int:
        place = self._to_read(uri)
        return self._client.get().size_of(place, uri)

    def create(self, uri: str, media_type: str) -> Sink:
        place = self._to_write(uri, self._access.check_write)
        return self._client.get().create(place, uri, media_type)

    def publish(self, uri: str, source: Source, fence: Fence, media_type: str) -> None:
        place = self._to_write(uri, self._access.check_publish)
        self._client.get().publish(place, uri, source, fence, media_type)

    def check(self) -> None:
        """Of the workspace's bucket; its folders need not be there."""
        if self._root is not None:
            self._client.get().check(self._root)

    def close(self) -> None:
        self._client.close()

    def _to_read(self, uri: str) -> Place:
        place = _place(uri)
        self._access.check_read(place.location, uri)
        return place

    def _to_write(self, uri: str, check: Callable[[Location, str], None]) -> Place:
        with as_output():
            place = _place(uri)
            if place.segments[-1].startswith(RESERVED):
                raise refused(uri, "does not name an object that may be written")
        check(place.location, uri)
        return place


def _place(uri: str) -> Place:
    """INPUT_INVALID without the package, whatever the roots are."""
    if not is_installed():
        raise refused(uri, NEEDS_EXTRA)
    return object_place(uri)


class _LazyBuckets:
    """One client for all jobs of a service."""

    def __init__(self, options: S3Options) -> None:
        self._options = options
        self._lock = threading.Lock()
        self._opened: Buckets | None = None

    def get(self) -> "Buckets":
        with self._lock:
            if self._opened is None:
                from lucius_sdk.workspace_io.s3.bucket import Buckets

                self._opened = Buckets(self._options)
            return self._opened

    def close(self) -> None:
        """A later call opens anew."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()
