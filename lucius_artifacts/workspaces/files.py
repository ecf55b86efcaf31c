"""Workspaces in folders of this machine."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

from lucius_artifacts.errors import Unavailable
from lucius_artifacts.ports.workspaces import JobFolder
from lucius_artifacts.workspaces.names import is_job_id


class FileWorkspaces:
    def __init__(self, root: Path, system: str) -> None:
        self._folder = root / system

    async def folders(self) -> AsyncIterator[JobFolder]:
        for tenant in await asyncio.to_thread(_folders_in, self._folder):
            for folder in await asyncio.to_thread(_folders_in, tenant):
                if is_job_id(folder.name):
                    yield JobFolder(folder.name, str(folder))

    async def delete(self, folder: JobFolder) -> None:
        try:
            await asyncio.to_thread(shutil.rmtree, folder.place)
        except FileNotFoundError:
            return
        except OSError as error:
            raise Unavailable(f"{folder.place} cannot be deleted: {error.strerror}") from error

    async def close(self) -> None:
        """Nothing is held."""


def _folders_in(folder: Path) -> list[Path]:
    """Links are not followed: what they point to is not ours."""
    try:
        with os.scandir(folder) as entries:
            return [Path(each.path) for each in entries if each.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise Unavailable(f"{folder} cannot be read: {error.strerror}") from error
