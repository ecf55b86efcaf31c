"""What an outcome is called in its version, and which run it is of."""

from lucius_artifacts.errors import Invalid
from lucius_artifacts.names import ArtifactUri, parse_uri
from lucius_sdk.workspace_io.fence import Fence
from lucius_sdk.workspace_io.outcome import Outcome
from lucius_sdk.workspace_io.uris import refused

# The tables of the standard library differ from machine to machine, and a take-over on another one
# must find the same name.
_EXTENSIONS = {
    "application/json": ".json",
    "application/pdf": ".pdf",
    "application/x-ndjson": ".ndjson",
    "application/xml": ".xml",
    "application/zip": ".zip",
    "image/jpeg": ".jpg",
    "image/png": ".png",
    "image/tiff": ".tiff",
    "text/csv": ".csv",
    "text/html": ".html",
    "text/markdown": ".md",
    "text/plain": ".txt",
    "text/xml": ".xml",
}


def artifact_name(uri: str) -> str:
    """INPUT_INVALID unless it is that of an artifact, without a version."""
    try:
        found = parse_uri(uri)
    except Invalid as error:
        raise refused(uri, error.problem) from error
    if not isinstance(found, ArtifactUri):
        raise refused(uri, "names a version; one publishes to artifact://<name>")
    return found.name


def path_of(outcome: Outcome, media_type: str) -> str:
    if outcome.name is not None:
        return outcome.name
    return "output" + _EXTENSIONS.get(media_type.partition(";")[0].strip().lower(), "")


def producer_of(fence: Fence, token: str) -> dict[str, str | int]:
    return {
        "token": token,
        "jobId": fence.job_id,
        "stepId": fence.step_id,
        "attempt_no": fence.attempt_no,
        "epoch": fence.epoch,
    }
