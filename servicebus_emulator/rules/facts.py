"""What a rule may look at in a message."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias
from uuid import UUID

Value: TypeAlias = str | int | float | bool | bytes | UUID | None


@dataclass(frozen=True, slots=True)
class Facts:
    """The application properties of a message and the system properties that filters can see."""

    properties: Mapping[str, object] = field(default_factory=dict)
    message_id: str | None = None
    correlation_id: str | None = None
    to: str | None = None
    reply_to: str | None = None
    subject: str | None = None
    session_id: str | None = None
    reply_to_session_id: str | None = None
    content_type: str | None = None
    partition_key: str | None = None
