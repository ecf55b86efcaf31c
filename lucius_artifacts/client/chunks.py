"""The bytes of a content, over connections that may break."""

from collections.abc import Callable, Iterator

from lucius_artifacts.client.answers import Content
from lucius_artifacts.client.errors import ContentDamaged, Denied, Unavailable
from lucius_artifacts.client.patience import Patience
from lucius_artifacts.client.storage import Storage

Ask = Callable[[], Content]
"""For the content again, with an address that has not expired."""


class Chunks:
    """Each connection goes on where the last one ended."""

    def __init__(self, storage: Storage, ask: Ask, patience: Patience) -> None:
        self._storage = storage
        self._ask = ask
        self._patience = patience

    def of(self, content: Content, start: int = 0) -> Iterator[bytes]:
        at, failures = start, 0
        while at < content.length:
            try:
                for chunk in self._whole(content, at):
                    at, failures = at + len(chunk), 0
                    yield chunk
            except (Denied, Unavailable) as error:
                failures += 1
                if failures >= self._patience.tries:
                    raise
                content = self._after(content, error, failures)

    def _whole(self, content: Content, start: int) -> Iterator[bytes]:
        left = content.length - start
        for chunk in self._storage.read(content, start):
            left -= len(chunk)
            if left < 0:
                raise ContentDamaged(content.uri, f"more than {content.length} bytes")
            yield chunk
        if left:
            raise Unavailable("the storage sent less than there is")

    def _after(self, content: Content, error: Denied | Unavailable, failures: int) -> Content:
        if isinstance(error, Denied):
            return self._ask()
        self._patience.pause(self._patience.delay(failures, error), None)
        return content


def check_digest(content: Content, digest: str) -> None:
    if digest != content.digest:
        raise ContentDamaged(content.uri, "another SHA-256 than was announced")
