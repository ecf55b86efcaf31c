"""The artifacts of a server, for the commands that use them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lucius_artifacts.client import ArtifactsClient, ClientError, ResumeFile, Unavailable
from lucius_artifacts.client import Refused as RefusedByServer
from lucius_artifacts.client.resuming import resume_file, state_folder
from lucius_cli.client import api_key, server_url
from lucius_cli.failures import CommandFailed, EnvironmentFailed, Refused, Unreachable
from lucius_cli.problems import refusal


@contextmanager
def artifacts_of(environ: Mapping[str, str]) -> Iterator[ArtifactsClient]:
    """Of the server that LUCIUS_URL names, asked with the key in LUCIUS_API_KEY. What goes wrong
    within is a `CommandFailed`."""
    url, key = server_url(environ), api_key(environ)
    try:
        with ArtifactsClient(url, key or None) as client:
            _check(client, url)
            yield client
    except ClientError as error:
        raise _failure(error, with_key=bool(key)) from error
    except OSError as error:
        raise EnvironmentFailed(f"{error.filename or 'a file'}: {error.strerror}") from error


def _check(client: ArtifactsClient, url: str) -> None:
    """Nobody waits for a server that was never there."""
    try:
        client.check()
    except ClientError as error:
        raise Unreachable(
            f"no LUCIUS at {url}: start one with `lucius up`, or set LUCIUS_URL"
        ) from error


def resume_of(environ: Mapping[str, str], tenant: str, path: Path) -> ResumeFile:
    """Where the upload of a file leaves word of how far it is."""
    return resume_file(state_folder(environ), server_url(environ), tenant, path)


def _failure(error: ClientError, *, with_key: bool) -> CommandFailed:
    if not isinstance(error, RefusedByServer | Unavailable):
        return Refused(str(error))
    if error.answer is None:
        return Unreachable(f"{error}; doing the same again is safe")
    status, problem, retry_after = error.answer
    return refusal(status, problem, retry_after, with_key=with_key)
