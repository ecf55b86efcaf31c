"""What counts for everybody (`defaults.yaml`) and for single tenants (`tenants.yaml`).

A file that holds nothing, or comments only, sets nothing.
"""

from lucius_contract.envelope import TENANT_ID_LIMIT
from lucius_contract.places import PUBLISHABLE_SCHEMES, READABLE_SCHEMES, read_prefix
from lucius_contract.refs import ARTIFACT
from lucius_contract.routing import MODE_SPELLINGS, Mode
from lucius_orchestrator.adapters.registry.document import Document
from lucius_orchestrator.adapters.registry.members import (
    Field,
    Fields,
    Member,
    Read,
    duration,
    list_of,
    mode,
    read_fields,
    whole,
)
from lucius_orchestrator.ports.registry import GlobalConfig, TenantConfig

_MOST_PLACES = 100
_MOST_GENERATIONS = 1_000_000
_MOST_WEIGHT = 100
_PER_MODE: Fields = {spelling: Field(whole(0)) for spelling in MODE_SPELLINGS}


def _per_mode(member: Member) -> dict[Mode, int]:
    limits: dict[Mode, int] = {}
    for spelling, limit in read_fields(member, _PER_MODE).items():
        meant = MODE_SPELLINGS[spelling]
        if meant in limits:
            member.at(spelling).refuse(f"is a spelling of {meant}, which has a limit already")
        limits[meant] = limit
    return limits


def _modes(member: Member) -> frozenset[Mode]:
    return frozenset(list_of(mode, 1, len(MODE_SPELLINGS))(member) or ())


def _place(schemes: frozenset[str]) -> Read:
    def read(member: Member) -> str | None:
        if not isinstance(member.value, str):
            member.must("a prefix of uris, as az://inbox/{tenant}/")
            return None
        try:
            return read_prefix(member.value, schemes)
        except ValueError as error:
            member.refuse(str(error))
            return None

    return read


_PLACES: Fields = {
    "input_places": Field(list_of(_place(READABLE_SCHEMES - {ARTIFACT}), 0, _MOST_PLACES)),
    "output_places": Field(list_of(_place(PUBLISHABLE_SCHEMES - {ARTIFACT}), 0, _MOST_PLACES)),
}


def _generations(member: Member) -> tuple[int, ...] | None:
    found: tuple[int, ...] | None = list_of(whole(1, _MOST_GENERATIONS), 1, 2)(member)
    if found and len(set(found)) < len(found):
        member.refuse("names a generation twice")
    return found


DEFAULTS: Fields = {
    "mode": Field(mode),
    "max_inflight": Field(whole(0)),
    "max_inflight_per_tenant": Field(whole(0)),
    "max_inflight_per_mode": Field(_per_mode),
    "job_sla": Field(duration),
    **_PLACES,
}
TENANT: Fields = {
    "mode": Field(mode),
    "allowed_modes": Field(_modes),
    "max_inflight": Field(whole(0)),
    **_PLACES,
    "webhook_keys": Field(_generations),
    "weight": Field(whole(1, _MOST_WEIGHT)),
}


def read_defaults(document: Document) -> GlobalConfig:
    return GlobalConfig(**read_fields(_top(document), DEFAULTS))


def read_tenants(document: Document) -> dict[str, TenantConfig]:
    top = _top(document)
    if not isinstance(top.value, dict):
        top.must("a mapping from tenant ids to their settings")
        return {}
    return {tenant_id: _tenant(top.at(tenant_id), tenant_id) for tenant_id in top.value}


def read_tenant(document: Document, tenant_id: str) -> TenantConfig:
    """One tenant that has a document of its own."""
    return _tenant(_top(document), tenant_id)


def _top(document: Document) -> Member:
    return Member(document, (), {} if document.value is None else document.value)


def _tenant(member: Member, tenant_id: str) -> TenantConfig:
    if not tenant_id.strip() or len(tenant_id) > TENANT_ID_LIMIT:
        member.refuse(f"a tenant id has 1 to {TENANT_ID_LIMIT} characters, not all of them blank")
    config = TenantConfig(**read_fields(member, TENANT))
    if config.mode and config.allowed_modes and config.mode not in config.allowed_modes:
        allowed = ", ".join(sorted(config.allowed_modes))
        member.at("mode").refuse(f"{config.mode} is not one of the allowed modes ({allowed})")
    return config
