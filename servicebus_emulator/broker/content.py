"""What the broker sees of a message."""

from collections.abc import Mapping
from typing import Protocol, Self

from servicebus_emulator.rules import Facts


class Content(Protocol):
    """Immutable. `ttl` and `scheduled_at` are milliseconds, the latter since the epoch."""

    @property
    def message_id(self) -> str | None: ...

    @property
    def session_id(self) -> str | None: ...

    @property
    def partition_key(self) -> str | None: ...

    @property
    def ttl(self) -> int | None: ...

    @property
    def scheduled_at(self) -> int | None: ...

    @property
    def size(self) -> int: ...

    @property
    def facts(self) -> Facts: ...

    def with_properties(self, changes: Mapping[str, object], /) -> Self:
        """The same message with these application properties replaced or added."""
