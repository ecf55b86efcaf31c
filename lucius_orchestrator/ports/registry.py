"""The registry: which protocols there are, and how tenants are configured.

What it answers is a snapshot: a job takes from it all that it will ever need, so that a reload
changes only jobs to come.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from lucius_contract import timeouts
from lucius_contract.canonical import resolve_arrows
from lucius_contract.errors import Problem
from lucius_contract.routing import Mode
from lucius_orchestrator.domain.aggregate import JsonObject, StepPolicy

PayloadCheck = Callable[[JsonObject], Sequence[Problem]]
"""All that is wrong with a payload, with pointers that begin at the payload."""


@dataclass(frozen=True, slots=True)
class ProtocolStep:
    """One step: who does it, what its payload must look like, how long it may take.

    `check` is the schema, compiled by the registry; without one it is compiled at every request.
    """

    step_type: str
    service: str
    payload_schema: Mapping[str, Any]
    policy: StepPolicy
    check: PayloadCheck | None = field(default=None, compare=False, repr=False)

    @property
    def payload_key(self) -> str:
        """The member of a request's payload that belongs to this step."""
        return self.step_type.lower()


@dataclass(frozen=True, slots=True)
class ProtocolDefinition:
    protocol_id: str
    version: str
    request_type: str
    aliases: tuple[str, ...]
    steps: tuple[ProtocolStep, ...]


@dataclass(frozen=True, slots=True)
class TenantConfig:
    """What is set for one tenant; None: the default counts. Places are added to the default's.
    `webhook_keys` are the generations of the tenant's key that sign its webhooks, the newest
    first; `weight` is how many directives it gets in a turn where tenants take turns."""

    mode: Mode | None = None
    allowed_modes: frozenset[Mode] | None = None
    max_inflight: int | None = None
    input_places: tuple[str, ...] = ()
    output_places: tuple[str, ...] = ()
    webhook_keys: tuple[int, ...] = (1,)
    weight: int = 1


@dataclass(frozen=True, slots=True)
class GlobalConfig:
    """What counts where a tenant sets nothing; places are every tenant's, in their normal form."""

    mode: Mode = Mode.DEFAULT
    max_inflight: int | None = None
    max_inflight_per_tenant: int | None = None
    max_inflight_per_mode: Mapping[Mode, int] = field(default_factory=dict)
    job_sla: timedelta = timeouts.JOB_SLA
    input_places: tuple[str, ...] = ()
    output_places: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All protocols by id, and by request type or alias with arrows resolved; tenants by id."""

    protocols: Mapping[str, ProtocolDefinition]
    by_request_type: Mapping[str, ProtocolDefinition]
    tenants: Mapping[str, TenantConfig]
    defaults: GlobalConfig

    def tenant(self, tenant_id: str) -> TenantConfig:
        return self.tenants.get(tenant_id, _UNCONFIGURED)

    def protocol_of(self, request_type: str) -> ProtocolDefinition | None:
        return self.by_request_type.get(resolve_arrows(request_type))


_UNCONFIGURED = TenantConfig()


class Registry(Protocol):
    def snapshot(self) -> Snapshot:
        """The last good set. Never blocks, never fails."""


class WatchedRegistry(Registry, Protocol):
    """A registry whose source may change while the process runs. What the source holds counts as a
    whole or not at all: when a part of it is wrong, or nothing can be read, the last good set
    stays in force and `error` says why."""

    @property
    def error(self) -> Exception | None:
        """Why what the source holds is not in force, or not known to be; None when it is."""

    def watch(self, interval: timedelta) -> AsyncIterator[Snapshot]:
        """Look at the source at this interval; every new set, from now on."""
