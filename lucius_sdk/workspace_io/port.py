"""What the workspace asks of a storage. Local files are one; object stores come behind it as well.

All verbs block, and are called from many threads at once. Their errors are those of
`lucius_sdk.error_model`: RETRYABLE where the storage may be better later, NON_RETRYABLE where the
same call can only fail again.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, Protocol, Self, runtime_checkable

from lucius_sdk.workspace_io.access import Tenant
from lucius_sdk.workspace_io.fence import Fence

if TYPE_CHECKING:
    from lucius_sdk.workspace_io.outcome import Outcome

Source = Callable[[], BinaryIO]
"""Opens what is to be published, from its beginning, each time that it is called."""


class Reader(Protocol):
    """Opens what a uri names."""

    @property
    def schemes(self) -> frozenset[str]:
        """Of the uris that it reads."""

    def open_read(self, uri: str) -> BinaryIO:
        """A stream over the whole object; nothing more than a chunk is held in memory.

        INPUT_NOT_FOUND if there is none, INPUT_INVALID if the uri names none that could be read,
        INPUT_FORBIDDEN if it may not be read. Faults later in the stream are raised by its `read`.
        """

    def close(self) -> None:
        """Give up connections. Twice is nothing."""


class Sink(Protocol):
    """An object in the making. Nobody sees it before `commit`."""

    def write(self, data: bytes | memoryview) -> None:
        """All of the data, or an error."""

    def commit(self) -> None:
        """Make it durable, then visible, whole and at once. After an error nothing is visible,
        or all of it is."""

    def discard(self) -> None:
        """As if it had never been begun; nothing after `commit`. Never raises."""


class Publisher(Protocol):
    """Puts outcomes where clients want them."""

    def publish(self, uri: str, source: Source, fence: Fence, media_type: str) -> None:
        """Put what `source` opens where other runs may want to publish too.

        OUTPUT_CONFLICT if a higher fence, or one of another tenant, has published: then nothing
        changes. A storage may say so already when a higher one has begun to. OUTPUT_FORBIDDEN if
        nothing may be published there, OUTPUT_UNSUPPORTED if nothing can. The fence is stored with
        the object, and no moment shows half of either. Where runs meet, `source` may be opened more
        than once.
        """


@runtime_checkable
class Storage(Reader, Publisher, Protocol):
    """Reads and writes one workspace, reads below input roots, publishes below output roots."""

    def of_tenant(self, tenant: Tenant) -> Self:
        """The same storage for a job of this tenant, which reaches no other tenant's folder of the
        workspace. It is closed with the one that it was made of."""

    def create(self, uri: str, media_type: str) -> Sink:
        """Begin an object; its folders are made. A commit replaces what stood there. The media
        type is kept with it where the storage has a place for one. OUTPUT_FORBIDDEN outside the
        workspace, or outside the tenant's folder of it."""

    def size_of(self, uri: str) -> int:
        """In bytes; INPUT_NOT_FOUND if there is no such object."""

    def check(self) -> None:
        """STORAGE_UNAVAILABLE unless the workspace's root can be read and written, as far as that
        can be told without writing."""


class Catalogue(Reader, Protocol):
    """The artifacts that one job may read, and where it may publish the next version of one."""

    def publish(self, uri: str, outcome: "Outcome", fence: Fence, media_type: str) -> str:
        """As the next version of the artifact that the uri names; gives the uri of its file.

        The same content of the same job makes no second version. OUTPUT_CONFLICT if a higher fence
        of the job has published, or if the version was put in quarantine: then the message says
        why.
        """


class Catalogues(Protocol):
    """All artifacts that a service reaches, whose-ever they are."""

    def of_job(self, tenant_id: str, job_id: str, token: str | None = None) -> Catalogue:
        """`token` is the directive's `artifact_token`: without it nothing can be published."""

    def close(self) -> None:
        """Give up connections. Twice is nothing."""
