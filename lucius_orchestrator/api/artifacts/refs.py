"""Refs of requests that name artifacts."""

from lucius_artifacts.errors import Invalid
from lucius_artifacts.names import ArtifactUri, parse_uri
from lucius_orchestrator.ports.inputs import ref_invalid


def check_output(uri: str, pointer: str) -> None:
    """A job publishes the next version of an artifact, whichever number that will have."""
    try:
        found = parse_uri(uri)
    except Invalid as error:
        raise ref_invalid(pointer, error.problem) from error
    if not isinstance(found, ArtifactUri):
        raise ref_invalid(pointer, "must be artifact://<name>: a job publishes its next version")
