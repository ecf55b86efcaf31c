"""Who calls, and what a caller may do.

A caller has *roles*, which say what it may do, and *tenants*, which say to whose jobs and
artifacts. Each thing that the API offers is a *verb*; `NEEDS` says which roles are enough for it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from lucius_contract.errors import ContractError, ErrorCode


class Role(StrEnum):
    SUBMIT = "submit"
    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"


class Verb(StrEnum):
    SUBMIT = "submit"
    LIST_JOBS = "list_jobs"
    READ_JOB = "read_job"
    CANCEL = "cancel"
    PAUSE = "pause"
    RESUME = "resume"
    REDRIVE = "redrive"
    LIST_DEAD_LETTERS = "list_dead_letters"
    READ_PROTOCOLS = "read_protocols"
    READ_SERVICES = "read_services"
    READ_METRICS = "read_metrics"
    READ_READINESS = "read_readiness"
    UPLOAD = "upload"
    READ_UPLOAD = "read_upload"
    READ_ARTIFACTS = "read_artifacts"
    PUBLISH = "publish"
    TOMBSTONE = "tombstone"
    RESTORE = "restore"
    COLLECT_GARBAGE = "collect_garbage"


def _table() -> Mapping[Verb, frozenset[Role]]:
    submit, read, operate, admin = Role.SUBMIT, Role.READ, Role.OPERATE, Role.ADMIN
    return MappingProxyType(
        {
            Verb.SUBMIT: frozenset({submit, admin}),
            Verb.LIST_JOBS: frozenset({read, operate, admin}),
            # One that submits may follow a job whose id it was given; to list what others
            # submitted for the tenant takes more.
            Verb.READ_JOB: frozenset({submit, read, operate, admin}),
            Verb.CANCEL: frozenset({operate, admin}),
            Verb.PAUSE: frozenset({operate, admin}),
            Verb.RESUME: frozenset({operate, admin}),
            Verb.REDRIVE: frozenset({operate, admin}),
            Verb.LIST_DEAD_LETTERS: frozenset({read, operate, admin}),
            Verb.READ_PROTOCOLS: frozenset(Role),
            Verb.READ_SERVICES: frozenset({read, operate, admin}),
            Verb.READ_METRICS: frozenset({read, operate, admin}),
            Verb.READ_READINESS: frozenset({operate, admin}),
            Verb.UPLOAD: frozenset({submit, admin}),
            Verb.READ_UPLOAD: frozenset({submit, read, operate, admin}),
            Verb.READ_ARTIFACTS: frozenset({read, operate, admin}),
            Verb.PUBLISH: frozenset({submit, admin}),
            Verb.TOMBSTONE: frozenset({operate, admin}),
            Verb.RESTORE: frozenset({operate, admin}),
            Verb.COLLECT_GARBAGE: frozenset({admin}),
        }
    )


NEEDS: Mapping[Verb, frozenset[Role]] = _table()
"""Any one of the roles is enough."""

ACROSS_TENANTS: frozenset[Verb] = frozenset(
    {Verb.READ_SERVICES, Verb.READ_METRICS, Verb.READ_READINESS, Verb.COLLECT_GARBAGE}
)
"""What these show or do cannot be told apart by tenant, so they are for callers with all tenants,
whatever their role."""


@dataclass(frozen=True, slots=True)
class Caller:
    """`tenants` is None for a caller with all tenants."""

    name: str
    tenants: frozenset[str] | None
    roles: frozenset[Role]

    def require(self, verb: Verb) -> None:
        """Raise FORBIDDEN unless the caller may do this, to the tenants that it sees."""
        if self.roles.isdisjoint(NEEDS[verb]):
            enough = " or ".join(role for role in Role if role in NEEDS[verb])
            raise ContractError(ErrorCode.FORBIDDEN, f"{verb} needs the role {enough}")
        if verb in ACROSS_TENANTS and self.tenants is not None:
            raise ContractError(ErrorCode.FORBIDDEN, f"{verb} needs a caller with all tenants")

    def sees(self, tenant_id: str | None) -> bool:
        """What belongs to no tenant is seen by callers with all tenants alone."""
        return self.tenants is None or tenant_id in self.tenants


class Authenticator(Protocol):
    async def authenticate(self, authorization: str | None) -> Caller:
        """The caller whom the `Authorization` header names.

        Raises ContractError: UNAUTHENTICATED without a valid credential, UNAVAILABLE when what
        credentials are checked against cannot be read. Never answers when in doubt.
        """
        ...
