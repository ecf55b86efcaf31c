"""What refs may name in this deployment, and whether one tenant can reach what is another's."""

from collections.abc import Iterator
from os.path import abspath
from pathlib import Path
from typing import NamedTuple

from lucius_contract.places import (
    HTTPS,
    STORAGE_SCHEMES,
    TENANT,
    Reach,
    normalised,
    workspace_of,
)
from lucius_contract.refs import tenant_folder
from lucius_orchestrator.api.health import Check
from lucius_orchestrator.engine.planning import PlanSettings
from lucius_orchestrator.ports.registry import Snapshot
from lucius_orchestrator.settings import Settings

_SHOWN = 3


def plan_settings_of(settings: Settings) -> PlanSettings:
    """With auth, a ref needs a place. Without it everybody on this machine may be every tenant, and
    the roots keep refs of `lucius up` where services read and publish."""
    inputs, outputs = Reach(schemes=frozenset({HTTPS})), Reach()
    if not settings.auth:
        folders = (Path(abspath(settings.data_dir)).as_uri(), settings.workspace_root.rstrip("/"))
        local = tuple(normalised(f"{folder}/") for folder in folders)
        read, published = settings.input_roots, settings.output_roots
        anywhere = STORAGE_SCHEMES | {HTTPS}
        inputs = Reach(local + read, anywhere - _schemes(read))
        outputs = Reach(local + published, anywhere - {HTTPS, "file"} - _schemes(published))
    return PlanSettings(settings.workspace_root, settings.system, settings.engine, inputs, outputs)


def check_places(settings: Settings, snapshot: Snapshot) -> Check:
    """Warn, with auth on, of places through which one tenant reaches what another publishes, or
    through which all tenants name a whole container."""
    if not settings.auth:
        return Check("places", True, "auth is off: refs may name all but the workspace")
    warnings = [*_in_workspace(settings, snapshot), *_shared(snapshot), *_whole(settings, snapshot)]
    if warnings:
        more = f"; and {len(warnings) - _SHOWN} more" if len(warnings) > _SHOWN else ""
        return Check("places", True, f"warning: {'; '.join(warnings[:_SHOWN])}{more}")
    if not any(_holdings(snapshot)):
        nothing = "none: refs may name artifacts, https inputs and the tenant's own workspace"
        return Check("places", True, nothing)
    return Check("places", True, "no tenant reaches what another one publishes")


class _Holding(NamedTuple):
    """A place that somebody has; `tenant` is the folder of the tenant."""

    prefix: str
    tenant: str
    owner: str
    is_output: bool


def _shared(snapshot: Snapshot) -> Iterator[str]:
    """Of two holdings of different tenants that overlap, one an output: each such output once."""
    enclosing: list[_Holding] = []
    warned: set[str] = set()
    for holding in sorted(set(_holdings(snapshot))):
        enclosing = [outer for outer in enclosing if holding.prefix.startswith(outer.prefix)]
        for outer in enclosing:
            if outer.tenant == holding.tenant or not (outer.is_output or holding.is_output):
                continue
            warning = _warning(outer, holding)
            if warning not in warned:
                warned.add(warning)
                yield warning
        enclosing.append(holding)


def _warning(outer: _Holding, inner: _Holding) -> str:
    shared = f"{outer.prefix} of {outer.owner}"
    if (outer.prefix, outer.owner) == (inner.prefix, inner.owner):
        return f"{shared} is one for all tenants, who overwrite or read what others publish there"
    return f"{shared} meets {inner.prefix} of {inner.owner}, and one of them is for outputs"


def _holdings(snapshot: Snapshot) -> Iterator[_Holding]:
    """The places of every tenant that is named, and of two that stand for all others."""
    others = ("~one", "~another")
    for tenant_id in (*snapshot.tenants, *others):
        folder = tenant_folder(tenant_id)
        for config, owner in (
            (snapshot.defaults, "defaults"),
            (snapshot.tenant(tenant_id), f"tenant {tenant_id}"),
        ):
            every = [(place, False) for place in config.input_places]
            every += [(place, True) for place in config.output_places]
            for place, is_output in every:
                if config is snapshot.defaults and TENANT not in place and tenant_id not in others:
                    continue  # it is the same for the two others
                yield _Holding(place.replace(TENANT, folder), folder, owner, is_output)


def _whole(settings: Settings, snapshot: Snapshot) -> Iterator[str]:
    """Whole containers, buckets and hosts that all tenants may read, unless the outer bound, which
    an operator has set, names them."""
    for place in snapshot.defaults.input_places:
        authority = place.split("/")[2]
        bound = settings.refs.places or ()
        is_whole = place.count("/") == 3 and TENANT not in place
        if is_whole and authority not in bound:
            yield f"{place} of defaults lets every tenant read all of it; add a folder to it"


def _in_workspace(settings: Settings, snapshot: Snapshot) -> Iterator[str]:
    workspace = workspace_of(settings.workspace_root, settings.system).prefix
    for holding in sorted(set(_holdings(snapshot))):
        if holding.prefix.startswith(workspace):
            yield f"{holding.prefix} of {holding.owner} is in the workspace and gives nothing"


def _schemes(prefixes: tuple[str, ...]) -> frozenset[str]:
    return frozenset(prefix.partition(":")[0] for prefix in prefixes)
