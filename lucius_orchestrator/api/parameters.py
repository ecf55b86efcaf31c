"""What clients may put into a path or a query."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from lucius_contract.documents import Instant
from lucius_contract.envelope import TENANT_ID_LIMIT, Visible

MAX_SEQ = 2**53 - 1
MAX_VERSION = 999_999_999

JobId = Annotated[str, Path(alias="jobId", description="As it was given when the job was made.")]
ProtocolId = Annotated[str, Path(alias="protocolId", description="Of a protocol in force.")]
Tenant = Annotated[
    Annotated[str, Field(min_length=1, max_length=TENANT_ID_LIMIT), Visible] | None,
    Query(description="Whose. A caller with several tenants must name one of them."),
]
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
