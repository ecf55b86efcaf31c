"""The last step's outcome, put where the client asked for it."""

import io
from typing import BinaryIO

from lucius_contract.documents import Artifact, Ref
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.port import Storage
from lucius_sdk.workspace_io.streams import CheckOpen, always_open, open_checked
from lucius_sdk.workspace_io.uris import refused, split_uri
from lucius_sdk.workspace_io.workspace import BYTES


def publish(
    storage: Storage,
    output_ref: Ref,
    content: Artifact | bytes,
    fence: Fence,
    media_type: str | None = None,
    check_open: CheckOpen = always_open,
) -> str:
    """Returns the uri. An artifact is verified on its way; OUTPUT_CONFLICT if newer work has
    published there."""
    check_open()
    uri = output_ref.uri
    if split_uri(uri).scheme not in storage.schemes:
        known = ", ".join(sorted(storage.schemes))
        raise refused(uri, f"has a scheme to which this service cannot publish (it can: {known})")

    def source() -> BinaryIO:
        if isinstance(content, Artifact):
            return open_checked(storage.open_read(content.uri), check_open, content)
        return open_checked(io.BytesIO(content), check_open)

    own_type = content.media_type if isinstance(content, Artifact) else BYTES
    storage.publish(uri, source, fence, media_type or own_type)
    return uri
