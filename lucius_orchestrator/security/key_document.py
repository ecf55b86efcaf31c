"""The key file's content: what is known of each API key. The secrets are not in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal, NamedTuple

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from lucius_orchestrator.security.callers import Caller, Role

ALL_TENANTS: Literal["*"] = "*"


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """`tenants` is None for a key with all tenants."""

    key_id: str
    name: str
    tenants: frozenset[str] | None
    roles: frozenset[Role]
    created_at: datetime
    revoked_at: datetime | None = None

    @property
    def caller(self) -> Caller:
        return Caller(self.name, self.tenants, self.roles)


class Entry(NamedTuple):
    info: KeyInfo
    sha256: str


class _Key(BaseModel):
    model_config = ConfigDict(extra="forbid")

    key_id: Annotated[str, Field(pattern=r"\A[0-9a-z]+\z")]
    name: Annotated[str, Field(min_length=1)]
    tenants: (
        Literal["*"] | Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    )
    roles: Annotated[list[Role], Field(min_length=1)]
    sha256: Annotated[str, Field(pattern=r"\A[0-9a-f]{64}\z")]
    created_at: AwareDatetime
    revoked_at: AwareDatetime | None

    def entry(self) -> Entry:
        tenants = None if self.tenants == ALL_TENANTS else frozenset(self.tenants)
        roles = frozenset(self.roles)
        return Entry(
            KeyInfo(self.key_id, self.name, tenants, roles, self.created_at, self.revoked_at),
            self.sha256,
        )


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")

    version: Literal[1] = 1
    keys: list[_Key]


def _key(entry: Entry) -> _Key:
    info = entry.info
    return _Key(
        key_id=info.key_id,
        name=info.name,
        tenants=ALL_TENANTS if info.tenants is None else sorted(info.tenants),
        roles=[role for role in Role if role in info.roles],
        sha256=entry.sha256,
        created_at=info.created_at,
        revoked_at=info.revoked_at,
    )


def write_entries(entries: Sequence[Entry]) -> bytes:
    document = _Document(keys=[_key(entry) for entry in entries])
    return document.model_dump_json(indent=2).encode() + b"\n"


def read_entries(content: bytes) -> tuple[Entry, ...] | None:
    """None where the content is not a whole, well-formed key file.

    Not an exception: that of the parser quotes what it read.
    """
    try:
        document = _Document.model_validate_json(content)
    except ValidationError:
        return None
    entries = tuple(key.entry() for key in document.keys)
    return entries if _unambiguous([entry.info for entry in entries]) else None


def _unambiguous(keys: Sequence[KeyInfo]) -> bool:
    """No id twice, and no tenant by the name that stands for all of them."""
    ids = {key.key_id for key in keys}
    return len(ids) == len(keys) and not any(ALL_TENANTS in (key.tenants or ()) for key in keys)
