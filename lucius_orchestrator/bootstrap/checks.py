"""What a running process needs, looked at: for `/healthz/ready` and for `lucius doctor`."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from lucius_artifacts.artifacts import Artifacts
from lucius_bus.port import Bus
from lucius_contract.errors import ContractError
from lucius_orchestrator.adapters.registry.problems import RegistryError, RegistryUnavailable
from lucius_orchestrator.api.health import Check
from lucius_orchestrator.bootstrap.artifact_checks import artifact_checks
from lucius_orchestrator.bootstrap.bus import open_bus
from lucius_orchestrator.bootstrap.parts import real_world
from lucius_orchestrator.bootstrap.places import check_places
from lucius_orchestrator.bootstrap.protocol_source import Found, copy_of, place_of, read_once
from lucius_orchestrator.bootstrap.stores import ledger_file, open_ledger
from lucius_orchestrator.bootstrap.temporal_checks import temporal_checks
from lucius_orchestrator.bootstrap.topology import topology_of
from lucius_orchestrator.bootstrap.topology_keeper import look_at
from lucius_orchestrator.ports.ledger import Ledger, LedgerError
from lucius_orchestrator.ports.registry import Snapshot, WatchedRegistry
from lucius_orchestrator.security.keys import KeyFile
from lucius_orchestrator.security.private_files import open_to_others
from lucius_orchestrator.settings import Settings, StorageBackend
from lucius_outbox.redaction import redacted

_SECONDS = 5.0
_WITHOUT_TEMPORAL = "so that the jobs that it drives wait"
_WITHOUT_ARTIFACTS = "so that only what needs no artifacts works"
Look = Callable[[], Awaitable[None]]
"""Returns if what is looked at answers."""


class Readiness:
    """Whether the process can do its work: the ledger and, where it has one, the bus answer, every
    service has its subscriptions, and the protocols that are in force are those that their source
    holds. Temporal is told about only: while it is away, requests and replies are taken and kept
    for it. So are artifacts: most jobs need none."""

    def __init__(
        self,
        ledger: Ledger,
        registry: WatchedRegistry,
        bus: Bus | None = None,
        topology: Callable[[], Awaitable[Check]] | None = None,
        temporal: Look | None = None,
        artifacts: Artifacts | None = None,
    ) -> None:
        self._ledger = ledger
        self._registry = registry
        self._bus = bus
        self._topology = topology
        self._temporal = temporal
        self._artifacts = artifacts

    async def __call__(self) -> Sequence[Check]:
        looks = [_answers("ledger", self._ledger.check)]
        if self._bus is not None:
            looks.append(_answers("bus", self._bus.check))
        if self._topology is not None:
            looks.append(_look("topology", self._topology))
        if self._temporal is not None:
            looks.append(_told_about("temporal", self._temporal, _WITHOUT_TEMPORAL))
        if self._artifacts is not None:
            catalogue, objects = self._artifacts.catalogue, self._artifacts.objects
            looks.append(_told_about("artifact catalogue", catalogue.check, _WITHOUT_ARTIFACTS))
            looks.append(_told_about("artifact store", objects.check, _WITHOUT_ARTIFACTS))
        return [*await asyncio.gather(*looks), self._protocols()]

    def _protocols(self) -> Check:
        """What was refused, or is away, does not make it unready: the last good set is in force."""
        error = self._registry.error
        if error is None:
            return Check("protocols", True, f"{len(self._registry.snapshot().protocols)} in force")
        return Check("protocols", True, f"the last good set is in force, because of {error}")


async def diagnose(settings: Settings) -> list[Check]:
    """What is there and what is not, each with the next thing to do."""
    protocols, snapshot = await _protocols(settings)
    return [
        _data_dir(settings),
        _file_modes(settings),
        await _ledger(settings),
        protocols,
        _keys(settings),
        *([] if snapshot is None else [check_places(settings, snapshot)]),
        *await artifact_checks(settings),
        *await _bus(settings, snapshot),
        *await temporal_checks(settings),
    ]


async def _look(name: str, look: Callable[[], Awaitable[Check]]) -> Check:
    try:
        async with asyncio.timeout(_SECONDS):
            return await look()
    except TimeoutError:
        return Check(name, False, f"no answer within {_SECONDS:.0f} s")
    except Exception as error:
        return Check(name, False, redacted(str(error)) or type(error).__name__)


async def _answers(name: str, check: Look) -> Check:
    async def look() -> Check:
        await check()
        return Check(name, True, "answers")

    return await _look(name, look)


async def _told_about(name: str, check: Look, without: str) -> Check:
    found = await _answers(name, check)
    return found if found.ok else Check(name, True, f"away, {without}: {found.detail}")


async def worker_readiness(temporal: Look, invoker: Look) -> Sequence[Check]:
    """A worker can do nothing without the two."""
    looks = _answers("temporal", temporal), _answers("invoker", invoker)
    return await asyncio.gather(*looks)


async def _bus(settings: Settings, snapshot: Snapshot | None) -> list[Check]:
    if not settings.shares_bus:
        return [Check("bus", True, f"inside `lucius up`, on port {settings.bus_port}")]
    async with open_bus(settings) as opened:
        found = await _answers("bus", opened.bus.check)
        if not found.ok:
            return [found._replace(detail=f"{opened.place.address}: {found.detail}")]
        found = found._replace(detail=f"{opened.place.address} answers")
        if snapshot is None:
            return [found]
        wanted = topology_of(snapshot, settings.artifacts.events_topic)
        return [found, await _look("topology", partial(look_at, opened.topology, wanted))]


def _data_dir(settings: Settings) -> Check:
    folder = settings.data_dir
    place = folder if folder.exists() else folder.absolute().parent
    if os.access(place, os.W_OK | os.X_OK):
        return Check("data", True, f"{folder} can be written")
    return Check("data", False, f"{folder} cannot be written: set LUCIUS_DATA_DIR to a folder")


def _file_modes(settings: Settings) -> Check:
    """What exists keeps its mode, which may be what an operator wants. So may that of a workspace,
    which services of other users share."""
    folder = settings.data_dir
    found = []
    if open_to_others([folder]):
        found = open_to_others(each for each in folder.iterdir() if each.name != "workspace")
    if not found:
        return Check(
            "file modes", True, f"nothing of the control plane in {folder} is open to others"
        )
    names = " ".join(sorted(each.name for each in found))
    return Check(
        "file modes",
        True,
        f"warning: other users may read what is in {folder}: close it there with"
        f" `chmod -R go= {names}`",
    )


async def _ledger(settings: Settings) -> Check:
    what = settings.storage_backend.value
    if settings.storage_backend is StorageBackend.SQLITE and not ledger_file(settings).exists():
        return Check("ledger", True, f"{what}: none yet; the first start makes one")
    try:
        async with asyncio.timeout(_SECONDS), open_ledger(settings, real_world()) as ledger:
            await ledger.check()
    except TimeoutError:
        return Check("ledger", False, f"{what}: no answer within {_SECONDS:.0f} s: is it running?")
    except LedgerError as error:
        return Check("ledger", False, redacted(f"{what}: {error}"))
    return Check("ledger", True, f"{what}: answers, its schema is this release's")


async def _protocols(settings: Settings) -> tuple[Check, Snapshot | None]:
    try:
        found = await read_once(settings, real_world().clock)
    except RegistryUnavailable as error:
        return Check("protocols", False, f"{error}; {_without_source(settings)}"), None
    except RegistryError as error:
        what = "entries" if settings.uses_app_configuration else "files"
        return Check("protocols", False, f"mend the {what}: {error}"), None
    return Check("protocols", True, _origin(settings, found)), found.snapshot


def _origin(settings: Settings, found: Found) -> str:
    origin = f"{place_of(settings)}: {', '.join(sorted(found.snapshot.by_request_type))}"
    if found.has_sentinel:
        return origin
    sentinel = settings.app_configuration_sentinel
    return f"{origin}; there is no {sentinel}: make one, or no change will be taken up"


def _without_source(settings: Settings) -> str:
    kept = copy_of(settings).read()
    if kept is None:
        return "a start is refused, since there is no copy of an earlier one"
    return f"a start uses the copy of {kept.read_at.isoformat(timespec='seconds')}"


def _keys(settings: Settings) -> Check:
    if not settings.auth:
        return Check("auth", True, "off: whoever reaches this machine's loopback may do all")
    if settings.jwks_url is not None:
        return Check("auth", True, f"JWT by {settings.jwks_url}, and API keys")
    try:
        found = KeyFile(settings.api_keys_file, real_world().clock).keys()
    except ContractError as error:
        return Check("auth", False, error.message)
    valid = [key for key in found if key.revoked_at is None]
    if not valid:
        return Check("auth", False, "there is no API key: make one with `lucius keys create`")
    return Check("auth", True, f"{len(valid)} API keys")
