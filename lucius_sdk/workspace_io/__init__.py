"""Where a step reads and writes: its input, what the steps before it made, its own folder, and the
place where the last step publishes.

Everything here is used from the threads of the team's code. What fails is raised as an error of
`lucius_sdk.error_model`, so that it says by itself whether another attempt can help.
"""

from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.inputs import Input, PriorArtifact, PriorArtifacts
from lucius_sdk.workspace_io.local import LocalStorage
from lucius_sdk.workspace_io.opening import open_storages
from lucius_sdk.workspace_io.port import Reader, Sink, Storage
from lucius_sdk.workspace_io.publishing import publish
from lucius_sdk.workspace_io.step_folder import StepFolder
from lucius_sdk.workspace_io.storages import Storages
from lucius_sdk.workspace_io.workspace import ArtifactWriter, Workspace

__all__ = [
    "ArtifactWriter",
    "Fence",
    "Input",
    "LocalStorage",
    "PriorArtifact",
    "PriorArtifacts",
    "Reader",
    "Sink",
    "StepFolder",
    "Storage",
    "Storages",
    "Workspace",
    "open_storages",
    "publish",
]
