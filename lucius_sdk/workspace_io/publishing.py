"""The last step's outcome, put where the client asked for it."""

from lucius_contract.documents import Artifact, Ref
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.outcome import Outcome
from lucius_sdk.workspace_io.port import Catalogue, Storage
from lucius_sdk.workspace_io.streams import CheckOpen, always_open
from lucius_sdk.workspace_io.uris import ARTIFACT, no_catalogue, refused, split_uri


def publish(
    storage: Storage,
    output_ref: Ref,
    content: Artifact | bytes,
    fence: Fence,
    media_type: str | None = None,
    check_open: CheckOpen = always_open,
    catalogue: Catalogue | None = None,
) -> str:
    """Returns the uri of what was published: the place itself, or the version that it became. An
    artifact is verified on its way; OUTPUT_CONFLICT if newer work has published there."""
    check_open()
    uri, outcome = output_ref.uri, Outcome(storage, content, check_open)
    kind, scheme = media_type or outcome.media_type, split_uri(uri).scheme
    if scheme == ARTIFACT:
        if catalogue is None:
            raise no_catalogue(uri)
        return catalogue.publish(uri, outcome, fence, kind)
    if scheme not in storage.schemes:
        known = ", ".join(sorted(storage.schemes))
        raise refused(uri, f"has a scheme to which this service cannot publish (it can: {known})")
    storage.publish(uri, outcome.open, fence, kind)
    return uri
