"""What the last step publishes, as those who take it read it."""

import hashlib
import io
from typing import BinaryIO

from lucius_contract.documents import Artifact
from lucius_sdk.workspace_io.port import Reader
from lucius_sdk.workspace_io.streams import CheckOpen, always_open, open_checked

BYTES = "application/octet-stream"


class Outcome:
    """An artifact of the workspace, or bytes. It can be opened often, and from many threads; every
    read ends when the work must stop."""

    def __init__(
        self, reader: Reader, content: Artifact | bytes, check_open: CheckOpen = always_open
    ) -> None:
        self.check_open = check_open
        self._reader = reader
        self._content = content

    @property
    def name(self) -> str | None:
        """Bytes have none."""
        return self._content.name if isinstance(self._content, Artifact) else None

    @property
    def media_type(self) -> str:
        return self._content.media_type if isinstance(self._content, Artifact) else BYTES

    @property
    def size(self) -> int:
        return self._content.size if isinstance(self._content, Artifact) else len(self._content)

    @property
    def sha256(self) -> str:
        """Of an artifact: as it was when it was written."""
        if isinstance(self._content, Artifact):
            return self._content.sha256
        return hashlib.sha256(self._content).hexdigest()

    def open(self) -> BinaryIO:
        """From the beginning; an artifact is verified on its way."""
        if isinstance(self._content, Artifact):
            source = self._reader.open_read(self._content.uri)
            return open_checked(source, self.check_open, self._content)
        return open_checked(io.BytesIO(self._content), self.check_open)

    def open_at(self, offset: int) -> BinaryIO:
        """A part of it, for those who verify the whole themselves."""
        if isinstance(self._content, Artifact):
            stream = open_checked(self._reader.open_read(self._content.uri), self.check_open)
        else:
            stream = open_checked(io.BytesIO(self._content), self.check_open)
        stream.seek(offset)
        return stream
