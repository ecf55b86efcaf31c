"""One attempt, from the delivery of its directive to its end."""

import asyncio
from enum import StrEnum

from tests.conform.broken_services.directives import Directive
from tests.conform.broken_services.lanes import Delivery
from tests.conform.broken_services.store import Row


class Stop(StrEnum):
    """Why work that was begun is not finished."""

    STALE = "the attempt does not count any more"
    CANCELLED = "cancel was requested"
    LOST = "another instance has taken it over"


class Attempt:
    """`deadline` is the end of its lease as far as the service knows, `row` what it has claimed."""

    def __init__(self, directive: Directive, delivery: Delivery) -> None:
        self.directive = directive
        self.delivery = delivery
        self.deadline = directive.lease_expires_at
        self.row: Row | None = None
        self.is_at_work = False
        self.stop_reason: Stop | None = None
        self.stopped = asyncio.Event()

    @property
    def claimed(self) -> Row:
        assert self.row is not None, "only what is claimed is worked on"
        return self.row

    def stop(self, reason: Stop) -> None:
        """The first reason counts."""
        self.stop_reason = self.stop_reason or reason
        self.stopped.set()

    def extend(self, deadline: float) -> None:
        self.deadline = max(self.deadline, deadline)
