"""What the verbs need of a database."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from lucius_artifacts.catalogue.sql.tables import Table
from lucius_outbox.message import Message

Row = TypeVar("Row")


class Session(ABC):
    """A transaction that has begun. Statements name their values `:name`.

    A statement that fails is an error of this package, and fails the transaction, whatever the
    caller makes of it: databases differ in what they would commit after it.
    """

    failure: Exception | None = None

    @abstractmethod
    def moment(self, value: Any) -> datetime:
        """A time, as the database gives it."""

    @abstractmethod
    async def rows(self, statement: str, values: Mapping[str, Any]) -> list[Any]: ...

    @abstractmethod
    async def write(self, statement: str, values: Mapping[str, Any]) -> int:
        """How many rows were written."""

    @abstractmethod
    async def insert_all(self, table: Table[Row], rows: Sequence[Row]) -> None: ...

    @abstractmethod
    async def emit(self, message: Message) -> None: ...

    def require_sound(self) -> None:
        """Before the commit."""
        if self.failure is not None:
            raise self.failure
