"""Where a step reads and writes: its input, what the steps before it made, its own folder, and the
place where the last step publishes.

Everything here is used from the threads of the team's code. What fails is raised as an error of
`lucius_sdk.error_model`, so that it says by itself whether another attempt can help.
"""

from typing import TYPE_CHECKING

from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.inputs import Input, PriorArtifact, PriorArtifacts
from lucius_sdk.workspace_io.local import LocalStorage
from lucius_sdk.workspace_io.opening import open_catalogues, open_storages
from lucius_sdk.workspace_io.port import Catalogue, Catalogues, Reader, Sink, Source, Storage
from lucius_sdk.workspace_io.publishing import publish
from lucius_sdk.workspace_io.s3.storage import S3Options, S3Storage
from lucius_sdk.workspace_io.step_folder import StepFolder
from lucius_sdk.workspace_io.storages import Storages
from lucius_sdk.workspace_io.workspace import ArtifactWriter, Workspace

if TYPE_CHECKING:
    from lucius_sdk.workspace_io.blob.storage import BlobStorage

__all__ = [
    "ArtifactWriter",
    "BlobStorage",
    "Catalogue",
    "Catalogues",
    "Fence",
    "Input",
    "LocalStorage",
    "PriorArtifact",
    "PriorArtifacts",
    "Reader",
    "S3Options",
    "S3Storage",
    "Sink",
    "Source",
    "StepFolder",
    "Storage",
    "Storages",
    "Workspace",
    "open_catalogues",
    "open_storages",
    "publish",
]

if not TYPE_CHECKING:  # or every misspelled name would pass for a storage

    def __getattr__(name: str) -> type:
        """Blobs come with packages of Azure, which are loaded when somebody asks."""
        if name != "BlobStorage":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from lucius_sdk.workspace_io.blob.storage import BlobStorage

        return BlobStorage
