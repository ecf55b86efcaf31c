"""What has a time at which something happens to it."""

import heapq
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

NEVER = 1 << 62  # milliseconds; after all times that can be asked for
_FEW = 64


class Deadlines(Generic[T]):
    """Items by their time, and at the same time by their number.

    What is settled before its time stays in the heap and is passed over when it comes up: taking
    it out would be a search. When most of the heap is such, it is built anew, so that each item
    costs the same however long the others wait. `is_wanted` tells by the item and its time.
    """

    __slots__ = ("_full", "_heap", "_is_wanted")

    def __init__(self, is_wanted: Callable[[T, int], bool]) -> None:
        self._heap: list[tuple[int, int, T]] = []
        self._is_wanted = is_wanted
        self._full = _FEW

    def add(self, when: int, number: int, item: T) -> None:
        """One number is one item: items themselves are never compared."""
        heapq.heappush(self._heap, (when, number, item))
        if len(self._heap) > self._full:
            self._tidy()

    def first(self) -> int:
        """The time of the first that is wanted, or `NEVER`."""
        heap = self._heap
        while heap and not self._is_wanted(heap[0][2], heap[0][0]):
            heapq.heappop(heap)
        return heap[0][0] if heap else NEVER

    def pop(self, now: int) -> T | None:
        """The first wanted one whose time has come."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            when, _, item = heapq.heappop(heap)
            if self._is_wanted(item, when):
                return item
        return None

    def clear(self) -> None:
        self._heap.clear()

    def _tidy(self) -> None:
        self._heap = [one for one in self._heap if self._is_wanted(one[2], one[0])]
        heapq.heapify(self._heap)
        self._full = 2 * len(self._heap) + _FEW
