"""The ids that were seen lately."""

from collections import deque
from collections.abc import Iterator


class History:
    """An id is a duplicate for the window after it was first seen, whatever became of its
    message; duplicates do not extend it. Ids that are over are forgotten when others come."""

    __slots__ = ("_order", "_until")

    def __init__(self) -> None:
        self._until: dict[str, int] = {}
        self._order: deque[tuple[int, str]] = deque()

    def has(self, message_id: str, now: int) -> bool:
        return self._until.get(message_id, now) > now

    def add(self, message_id: str, until: int, now: int) -> None:
        self._forget(now)
        self._until[message_id] = until
        self._order.append((until, message_id))

    def seen(self, now: int) -> Iterator[tuple[str, int]]:
        return ((one, until) for one, until in self._until.items() if until > now)

    def _forget(self, now: int) -> None:
        """As the first added goes first, a window that was made shorter keeps some for longer:
        `has` does not count these."""
        order = self._order
        while order and order[0][0] <= now:
            until, message_id = order.popleft()
            if self._until.get(message_id) == until:
                del self._until[message_id]
