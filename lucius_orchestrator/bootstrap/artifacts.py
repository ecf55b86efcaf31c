"""The artifacts of a deployment, by what the settings name."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote, urlsplit

from lucius_artifacts.artifacts import Artifacts, Rules
from lucius_artifacts.catalogue.memory import MemoryCatalogue
from lucius_artifacts.collection.schedule import Schedule
from lucius_artifacts.errors import Unavailable
from lucius_artifacts.objects.files import FileObjects
from lucius_artifacts.policies import AllowAll, PolicyService
from lucius_artifacts.ports.catalogue import Catalogue
from lucius_artifacts.ports.objects import Objects
from lucius_artifacts.ports.workspaces import Workspaces
from lucius_artifacts.signing import UrlSigner
from lucius_artifacts.telemetry import Telemetry
from lucius_artifacts.workspaces.files import FileWorkspaces
from lucius_artifacts.world import Limits
from lucius_artifacts.world import World as ArtifactWorld
from lucius_orchestrator.adapters.artifacts import LedgerJobs
from lucius_orchestrator.bootstrap.authentication import artifact_signer_of
from lucius_orchestrator.bootstrap.stores import conninfo_of, make_folder
from lucius_orchestrator.engine.engine import World
from lucius_orchestrator.ports.ledger import Ledger
from lucius_orchestrator.settings import ArtifactStore, CatalogueBackend, Settings
from lucius_outbox.telemetry import Metrics


@asynccontextmanager
async def open_artifacts(
    settings: Settings, world: World, ledger: Ledger, address: str, metrics: Metrics
) -> AsyncIterator[Artifacts | None]:
    """None where they are off. `address` is where the API is, unless the settings say better.
    `Unavailable`."""
    if not settings.artifacts.is_on:
        yield None
        return
    async with AsyncExitStack() as opened:
        policy = await _policy(settings, opened)
        catalogue = await open_catalogue(settings)
        opened.push_async_callback(catalogue.close)
        signer = _signer(settings, world)
        objects = await _objects(settings, signer, address, opened)
        opened.push_async_callback(objects.close)
        workspaces = open_workspaces(settings)
        if workspaces is not None:
            opened.push_async_callback(workspaces.close)
        artifacts = Artifacts.over(
            catalogue,
            objects,
            LedgerJobs(ledger),
            ArtifactWorld(world.clock, world.entropy),
            _rules(settings, policy),
            telemetry=Telemetry(metrics),
            signer=signer,
            workspaces=workspaces,
        )
        opened.push_async_callback(artifacts.verifications.close)
        yield artifacts


def why_off(settings: Settings) -> str:
    """What to set, for whoever asks for artifacts where there are none."""
    if settings.artifacts.store is ArtifactStore.OFF:
        return "artifacts are off: set LUCIUS_ARTIFACTS_STORE to files or azure_blob"
    return (
        f"artifacts are off, since the ledger's backend {settings.storage_backend} has no catalogue"
        " for them: set LUCIUS_ARTIFACTS_CATALOGUE to sqlite or postgres"
    )


async def open_catalogue(settings: Settings) -> Catalogue:
    backend = settings.artifacts.catalogue
    if backend is CatalogueBackend.MEMORY:
        return MemoryCatalogue()
    if backend is CatalogueBackend.SQLITE:
        from lucius_artifacts.catalogue.sqlite import SqliteCatalogue

        make_folder(settings.data_dir)
        return await SqliteCatalogue.open(catalogue_file(settings))
    from lucius_artifacts.catalogue.postgres import PostgresCatalogue

    return await PostgresCatalogue.open(conninfo_of(settings))


async def open_azure(settings: Settings) -> Objects:
    from lucius_artifacts.objects.azure_blob import AzureBlobObjects
    from lucius_azure.storage import StorageAccount

    artifacts = settings.artifacts
    account = StorageAccount(artifacts.connection, artifacts.endpoint)
    try:
        return await AzureBlobObjects.open(account, artifacts.container)
    except ValueError as error:  # of a connection string without a key
        raise Unavailable(f"LUCIUS_ARTIFACTS_CONNECTION: {error}") from error


def open_workspaces(settings: Settings) -> Workspaces | None:
    """None where they are kept for ever, or lie where nobody here can reach them: blobs need the
    account of the artifacts."""
    if not settings.workspace_retention:
        return None
    root, artifacts = urlsplit(settings.workspace_root), settings.artifacts
    if root.scheme == "file":
        return FileWorkspaces(Path(unquote(root.path)), settings.system)
    if root.scheme != "az" or (artifacts.connection is None and artifacts.endpoint is None):
        return None
    from lucius_artifacts.workspaces.azure_blob import AzureBlobWorkspaces
    from lucius_azure.storage import StorageAccount

    account = StorageAccount(artifacts.connection, artifacts.endpoint)
    folder = unquote(root.path)
    return AzureBlobWorkspaces.open(account, root.netloc, folder, settings.system)


def catalogue_file(settings: Settings) -> Path:
    return settings.data_dir / "artifacts.db"


def object_folder(settings: Settings) -> Path:
    return settings.data_dir / "artifacts"


def _signer(settings: Settings, world: World) -> UrlSigner | None:
    is_files = settings.artifacts.store is ArtifactStore.FILES
    return artifact_signer_of(settings, world) if is_files else None


async def _objects(
    settings: Settings, signer: UrlSigner | None, address: str, opened: AsyncExitStack
) -> Objects:
    if signer is None:
        return await open_azure(settings)
    base_url = settings.artifacts.base_url or settings.callback_base_url or address
    return FileObjects(await _folder(settings, opened), signer, base_url)


async def _folder(settings: Settings, opened: AsyncExitStack) -> Path:
    """A catalogue that forgets everything would not know the files again: they go with it."""
    make_folder(settings.data_dir)
    if settings.artifacts.catalogue is not CatalogueBackend.MEMORY:
        return object_folder(settings)
    folder = TemporaryDirectory(prefix="artifacts-", dir=settings.data_dir)
    opened.push_async_callback(partial(asyncio.to_thread, folder.cleanup))
    return Path(folder.name)


async def _policy(settings: Settings, opened: AsyncExitStack) -> AllowAll | PolicyService:
    url = settings.artifacts.policy_url
    policy = AllowAll() if url is None else PolicyService(url)
    opened.push_async_callback(policy.close)
    return policy


def _rules(settings: Settings, policy: AllowAll | PolicyService) -> Rules:
    artifacts = settings.artifacts
    return Rules(
        limits=Limits(max_length=artifacts.max_bytes, session_lifetime=artifacts.session),
        schedule=Schedule(grace=artifacts.grace, retention=artifacts.retention),
        policy=policy,
        workspace_retention=settings.workspace_retention,
    )
