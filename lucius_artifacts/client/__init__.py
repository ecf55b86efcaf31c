"""A client of the artifacts' API: httpx and the standard library, and nothing of the server."""

from lucius_artifacts.client.answers import Content
from lucius_artifacts.client.client import ArtifactsClient
from lucius_artifacts.client.errors import (
    ClientError,
    Conflict,
    ContentChanged,
    ContentDamaged,
    Denied,
    Gone,
    NotFound,
    NotTaken,
    Refused,
    Unavailable,
)
from lucius_artifacts.client.patience import Patience
from lucius_artifacts.client.progress import Phase, Progress
from lucius_artifacts.client.resuming import ResumeFile, resume_file, state_folder
from lucius_artifacts.client.sources import FileSource, Measured, Source
from lucius_artifacts.client.uploading import Uploaded

__all__ = [
    "ArtifactsClient",
    "ClientError",
    "Conflict",
    "Content",
    "ContentChanged",
    "ContentDamaged",
    "Denied",
    "FileSource",
    "Gone",
    "Measured",
    "NotFound",
    "NotTaken",
    "Patience",
    "Phase",
    "Progress",
    "Refused",
    "ResumeFile",
    "Source",
    "Unavailable",
    "Uploaded",
    "resume_file",
    "state_folder",
]
