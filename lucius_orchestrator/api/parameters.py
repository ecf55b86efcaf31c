"""What clients may put into a path or a query.

A query parameter that an operation does not have is refused: passed over, a misspelt filter would
show everything.
"""

from collections.abc import Callable, Collection, Iterator
from typing import Annotated, Any
from urllib.parse import parse_qsl

from fastapi import Depends, Path, Query, params
from fastapi.dependencies.utils import get_dependant, get_flat_params
from pydantic import Field
from starlette.types import Scope

from lucius_contract.canonical import pointer_to
from lucius_contract.documents import Instant
from lucius_contract.envelope import TENANT_ID_LIMIT, Visible
from lucius_contract.errors import ContractError, ErrorCode, Problem

MAX_SEQ = 2**53 - 1
MAX_VERSION = 999_999_999

JobId = Annotated[str, Path(alias="jobId", description="As it was given when the job was made.")]
ProtocolId = Annotated[str, Path(alias="protocolId", description="Of a protocol in force.")]
_TenantId = Annotated[str, Field(min_length=1, max_length=TENANT_ID_LIMIT), Visible] | None


async def _tenant(
    tenant_id: Annotated[
        _TenantId, Query(description="Whose. A caller with several tenants must name one of them.")
    ] = None,
    tenant: Annotated[
        _TenantId, Query(deprecated=True, description="The older name of tenant_id.")
    ] = None,
) -> str | None:
    if tenant_id is not None and tenant is not None and tenant_id != tenant:
        message = "tenant_id and its older name tenant differ; give one of them"
        problems = [Problem(f"/query/{name}", message) for name in ("tenant_id", "tenant")]
        raise ContractError(ErrorCode.ENVELOPE_INVALID, "two tenants", problems)
    return tenant if tenant_id is None else tenant_id


Tenant = Annotated[str | None, Depends(_tenant)]
Text = Annotated[str, Field(min_length=1, max_length=256), Visible]
Since = Annotated[
    Instant | None, Query(description="Made at this time or later, as in 2026-01-27T10:02:00Z.")
]
Limit = Annotated[
    int, Query(ge=1, le=1000, description="At most so many; the server may give fewer.")
]
Cursor = Annotated[
    Annotated[str, Field(min_length=1, max_length=2048)] | None,
    Query(description="The next_cursor of the page before."),
]
EventCursor = Annotated[
    Annotated[int, Field(ge=0, le=MAX_SEQ)] | None,
    Query(description="The next_cursor of the page before, or the seq of the last event known."),
]
UploadId = Annotated[
    str, Path(alias="uploadId", description="As it was given when the upload was begun.")
]
ArtifactName = Annotated[str, Path(alias="name", description="Of an artifact.")]
VersionNumber = Annotated[
    Annotated[int, Field(ge=1, le=MAX_VERSION)],
    Path(alias="version", description="The number of a version."),
]

_MOST_FIELDS = 100
_MOST_PROBLEMS = 10
_LONGEST_NAME = 64


def query_names(path: str, endpoint: Callable[..., Any]) -> list[str]:
    """Return the query parameters that an endpoint declares."""
    declared = get_flat_params(get_dependant(path=path, call=endpoint))
    return [field.alias for field in declared if isinstance(field.field_info, params.Query)]


def read_query(scope: Scope, known: Collection[str] = ()) -> dict[str, str]:
    """Return the query's parameters. Raise ENVELOPE_INVALID for one that is not known, and for one
    that is given twice: all of them have one value."""
    raw = scope["query_string"]
    if not raw:
        return {}
    try:
        pairs = parse_qsl(
            raw.decode("latin-1"), keep_blank_values=True, max_num_fields=_MOST_FIELDS
        )
    except ValueError as error:
        problem = Problem("/query", f"has more than {_MOST_FIELDS} parameters")
        raise ContractError(
            ErrorCode.ENVELOPE_INVALID, "the query cannot be read", [problem]
        ) from error
    problems = list(_problems_of_query([name for name, _ in pairs], known))
    if problems:
        raise ContractError(
            ErrorCode.ENVELOPE_INVALID,
            "the query has parameters that this operation does not take",
            problems[:_MOST_PROBLEMS],
        )
    return dict(pairs)


def _problems_of_query(given: list[str], known: Collection[str]) -> Iterator[Problem]:
    allowed = f"known: {', '.join(known)}" if known else "this operation has no query parameters"
    for name in dict.fromkeys(given):
        pointer = pointer_to(("query", name[:_LONGEST_NAME]))
        if name not in known:
            yield Problem(pointer, f"is not known; {allowed}")
        elif given.count(name) > 1:
            yield Problem(pointer, "is given more than once; give it once")
