"""Files on their way to a server and back, with progress, and with a word on how to go on."""

import mimetypes
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from lucius_artifacts.client import ArtifactsClient, Content, Uploaded
from lucius_cli.artifacts_progress import shown_progress
from lucius_cli.artifacts_server import resume_of
from lucius_cli.artifacts_words import KnownEntry, LocalEntry
from lucius_cli.failures import Unsuitable
from lucius_cli.output import say

_UNTYPED = "application/octet-stream"
_COPIED = 1024 * 1024

Entry = dict[str, str]


def upload(client: ArtifactsClient, file: Path, tenant: str) -> Uploaded:
    resume = resume_of(os.environ, tenant, file)
    with shown_progress(file.name, sys.stderr) as progress:
        try:
            return client.upload(file, tenant, progress=progress, resume=resume)
        except KeyboardInterrupt:
            if resume.is_there:
                say(f"interrupted: the same command goes on with the upload of {file}")
            raise


def entries_of(
    client: ArtifactsClient, wanted: Sequence[LocalEntry | KnownEntry], tenant: str
) -> list[Entry]:
    """What a version is published of; files of this machine are uploaded."""
    return [_entry(client, each, tenant) for each in wanted]


def _entry(client: ArtifactsClient, wanted: LocalEntry | KnownEntry, tenant: str) -> Entry:
    if isinstance(wanted, LocalEntry):
        digest = upload(client, wanted.file, tenant).digest
        media_type = mimetypes.guess_type(wanted.file.name)[0] or _UNTYPED
    else:
        known = client.content(wanted.uri, tenant)
        digest, media_type = known.digest, known.media_type
    return {"path": wanted.path, "digest": digest, "media_type": media_type}


def save(client: ArtifactsClient, content: Content, target: Path, tenant: str | None) -> None:
    with shown_progress(target.name, sys.stderr) as progress, _told_how_to_go_on(target):
        client.save(content, target, tenant, progress=progress)


@contextmanager
def _told_how_to_go_on(target: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        say(f"interrupted: the same command goes on with the download to {target}")
        raise


def copy_to_stdout(client: ArtifactsClient, uri: str, tenant: str | None) -> None:
    """It fails at the end if what came is not right."""
    with client.open(uri, tenant) as stream:
        shutil.copyfileobj(stream, sys.stdout.buffer, _COPIED)
    sys.stdout.buffer.flush()


def target_of(output: str | None, content: Content) -> Path:
    """A file of its own name in a folder, or in this one; there nothing is replaced unasked."""
    name = Path(content.file_name).name or content.digest
    if output is not None and not os.path.isdir(output):
        if not Path(output).parent.is_dir():
            raise Unsuitable(f"there is no folder {Path(output).parent}")
        return Path(output)
    target = Path(output or "", name)
    if output is None and target.exists():
        raise Unsuitable(f"{target} is there already: name the file with -o")
    return target
