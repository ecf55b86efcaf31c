"""What artifacts need, looked at: for `lucius doctor`."""

import asyncio
import os

from lucius_artifacts.errors import ArtifactsError
from lucius_orchestrator.api.health import Check
from lucius_orchestrator.bootstrap.artifacts import (
    catalogue_file,
    object_folder,
    open_azure,
    open_catalogue,
    why_off,
)
from lucius_orchestrator.settings import ArtifactStore, CatalogueBackend, Settings
from lucius_outbox.redaction import redacted

_SECONDS = 5.0


async def artifact_checks(settings: Settings) -> list[Check]:
    if not settings.artifacts.is_on:
        return [Check("artifacts", True, why_off(settings))]
    return [await _catalogue(settings), await _store(settings)]


async def _catalogue(settings: Settings) -> Check:
    name, backend = "artifact catalogue", settings.artifacts.catalogue
    if backend is CatalogueBackend.SQLITE and not catalogue_file(settings).exists():
        return Check(name, True, f"{backend}: none yet; the first start makes one")
    try:
        async with asyncio.timeout(_SECONDS):
            catalogue = await open_catalogue(settings)
            try:
                await catalogue.check()
            finally:
                await catalogue.close()
    except TimeoutError:
        return Check(name, False, f"{backend}: no answer within {_SECONDS:.0f} s: is it running?")
    except ArtifactsError as error:
        return Check(name, False, redacted(f"{backend}: {error}"))
    return Check(name, True, f"{backend}: answers, its schema is this release's")


async def _store(settings: Settings) -> Check:
    name = "artifact store"
    if settings.artifacts.store is ArtifactStore.FILES:
        return _folder(name, settings)
    where = f"container {settings.artifacts.container}"
    try:
        async with asyncio.timeout(_SECONDS):
            objects = await open_azure(settings)
            await objects.close()
    except TimeoutError:
        return Check(name, False, f"{where}: no answer within {_SECONDS:.0f} s")
    except ArtifactsError as error:
        return Check(name, False, redacted(f"{where}: {error}"))
    return Check(name, True, f"{where}: answers")


def _folder(name: str, settings: Settings) -> Check:
    folder = object_folder(settings)
    if not folder.exists():
        return Check(name, True, f"{folder}: none yet; the first upload makes one")
    if os.access(folder, os.W_OK | os.X_OK):
        return Check(name, True, f"{folder} can be written")
    return Check(name, False, f"{folder} cannot be written: mend its owner or its mode")
