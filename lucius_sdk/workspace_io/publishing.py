"""The last step's outcome, put where the client asked for it."""

from typing import Protocol

from lucius_contract.documents import Artifact, Ref
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.outcome import Outcome
from lucius_sdk.workspace_io.port import Catalogue, Publisher, Reader
from lucius_sdk.workspace_io.streams import CheckOpen, always_open
from lucius_sdk.workspace_io.uris import ARTIFACT, as_output, no_catalogue, split_uri


class Reach(Reader, Publisher, Protocol):
    """Reads the artifact, and publishes it."""


def publish(
    reach: Reach,
    output_ref: Ref,
    content: Artifact | bytes,
    fence: Fence,
    media_type: str | None = None,
    check_open: CheckOpen = always_open,
    catalogue: Catalogue | None = None,
) -> str:
    """Returns the uri of what was published: the place itself, or the version that it became. An
    artifact is verified on its way; OUTPUT_CONFLICT if newer work, or another tenant's, has
    published there."""
    check_open()
    uri, outcome = output_ref.uri, Outcome(reach, content, check_open)
    kind = media_type or outcome.media_type
    with as_output():
        is_artifact = split_uri(uri).scheme == ARTIFACT
        if is_artifact and catalogue is None:
            raise no_catalogue(uri)
    if is_artifact and catalogue is not None:
        return catalogue.publish(uri, outcome, fence, kind)
    reach.publish(uri, outcome.open, fence, kind)
    return uri
