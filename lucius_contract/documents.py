"""What all documents on the wire share: tolerance, versions, instants, errors that name a field."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from lucius_contract import CONTRACT_VERSION
from lucius_contract.canonical import pointer_to, read_json
from lucius_contract.errors import ContractError, ErrorCode, Problem

_VERSION = re.compile(r"([0-9]+)(\.[0-9]+)?")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


def _spelled_as_instant(value: Any) -> Any:
    if isinstance(value, datetime) or (isinstance(value, str) and _INSTANT.fullmatch(value)):
        return value
    raise ValueError("must be a time with its offset, as in 2026-01-27T10:02:00Z")


def _in_utc(value: datetime) -> datetime:
    try:
        return value.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("must lie in the years 1 to 9999, in UTC") from error


Instant = Annotated[AwareDatetime, BeforeValidator(_spelled_as_instant), AfterValidator(_in_utc)]
"""A point in time; read with any offset, kept and written in UTC."""

Name = Annotated[str, Field(min_length=1, max_length=128)]
Whole = Annotated[int, Field(strict=True, ge=0)]
SchemaVersion = Annotated[str, Field(pattern=rf"^{CONTRACT_VERSION}(\.[0-9]+)?$")]


class Document(BaseModel):
    """A JSON object on the wire: exact member names, unknown members kept.

    A null member of the whole document counts as absent; none is ever written.
    """

    model_config = ConfigDict(
        extra="allow",
        frozen=True,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
        use_attribute_docstrings=True,
    )

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> Self:
        """Validate a parsed object. Only wire names count, not the Python spellings of them."""
        members = {name: member for name, member in value.items() if member is not None}
        try:
            return cls.model_validate(members, by_alias=True, by_name=False)
        except ValidationError as error:
            raise ContractError(
                ErrorCode.ENVELOPE_INVALID,
                f"not a valid {cls.__name__.upper()}",
                [Problem(pointer_to(e["loc"]), e["msg"]) for e in error.errors()],
            ) from error

    def to_bytes(self) -> bytes:
        return self.model_dump_json(exclude_none=True).encode()

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json", exclude_none=True)


class Ref(Document):
    """Where something lies."""

    uri: Annotated[str, Field(min_length=1)]
    """A URI without credentials."""

    def to_json(self) -> dict[str, Any]:
        return super().to_json() if self.model_extra else {"uri": self.uri}


class Artifact(Document):
    """Something that a step has written."""

    name: Annotated[str, Field(min_length=1, max_length=1024)]
    """Path below the step's own folder."""
    uri: Annotated[str, Field(min_length=1)]
    """Where it lies."""
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    """Digest of the content, in lower-case hex."""
    size: Whole
    """Bytes."""
    media_type: str = "application/octet-stream"


def read_object(raw: bytes, limit: int | None = None) -> Mapping[str, Any]:
    """Parse a JSON object of a version that this contract speaks."""
    if limit is not None and len(raw) > limit:
        raise ContractError(
            ErrorCode.TOO_LARGE, f"the document has {len(raw)} bytes; at most {limit} are allowed"
        )
    value = read_json(raw)
    if not isinstance(value, dict):
        raise ContractError(
            ErrorCode.ENVELOPE_INVALID, "not a JSON object", [Problem("", "must be an object")]
        )
    _check_version(value.get("schema_version"))
    return value


def _check_version(version: Any) -> None:
    """Before anything else is looked at: another major may mean something else by every field."""
    if version is None:
        return
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        raise ContractError(
            ErrorCode.ENVELOPE_INVALID,
            "schema_version is not a version",
            [Problem("/schema_version", 'must be text like "1" or "1.2"')],
        )
    if match[1] != CONTRACT_VERSION:
        raise ContractError(
            ErrorCode.SCHEMA_VERSION_UNSUPPORTED,
            f"schema_version {version} is not supported; this side speaks {CONTRACT_VERSION}",
            [Problem("/schema_version", f"must be {CONTRACT_VERSION} or {CONTRACT_VERSION}.N")],
        )
