"""Who asks, and what of the ledger that caller may see."""

import re
from collections.abc import Awaitable, Callable, Collection

from starlette.requests import Request
from starlette.types import Scope

from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_orchestrator.api.headers import authorization
from lucius_orchestrator.api.parameters import read_query
from lucius_orchestrator.api.parts import ApiParts, HealthParts
from lucius_orchestrator.ports.ledger import Stored
from lucius_orchestrator.security.callers import Caller, Verb

_CALLER = "lucius.caller"
_JOB_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")


class Gate:
    """Who may do what at all."""

    def __init__(self, parts: HealthParts) -> None:
        self._authenticator = parts.authenticator

    async def caller(self, scope: Scope, verb: Verb) -> Caller:
        caller = await self._authenticator.authenticate(authorization(scope))
        caller.require(verb)
        return caller

    async def may(self, scope: Scope, verb: Verb) -> bool:
        """Whether the request shows a credential for this. One that cannot be checked is none."""
        try:
            await self.caller(scope, verb)
        except ContractError:
            return False
        return True

    def allows(
        self, verb: Verb | None, query: Collection[str]
    ) -> Callable[[Request], Awaitable[None]]:
        """A dependency of a route: before anything else is looked at, the caller may do this (None:
        so may everybody), and the query has no other parameters than these."""

        async def dependency(request: Request) -> None:
            if verb is not None:
                request.scope[_CALLER] = await self.caller(request.scope, verb)
            read_query(request.scope, query)

        return dependency


class Access(Gate):
    """And to which jobs."""

    def __init__(self, parts: ApiParts) -> None:
        super().__init__(parts)
        self._ledger = parts.engine.ledger

    async def job(self, request: Request, job_id: str) -> Stored:
        """The job, if the caller sees it. One of another tenant is one that does not exist."""
        stored = await self._ledger.load(job_id) if _JOB_ID.fullmatch(job_id) else None
        if stored is None or not caller_of(request).sees(stored.aggregate.job.tenant_id):
            raise ContractError(ErrorCode.JOB_NOT_FOUND, f"there is no job {job_id}")
        return stored

    async def check_again(self, request: Request, verb: Verb, tenant_id: str) -> None:
        """Raise unless the credential of a request that goes on still allows what it did."""
        if not (await self.caller(request.scope, verb)).sees(tenant_id):
            raise ContractError(ErrorCode.FORBIDDEN, "the tenant is no longer the caller's")


def caller_of(request: Request) -> Caller:
    caller: Caller = request.scope[_CALLER]
    return caller


def require_tenant(caller: Caller, tenant_id: str, pointer: str) -> None:
    if not caller.sees(tenant_id):
        problem = Problem(pointer, "not one of the caller's tenants")
        raise ContractError(ErrorCode.FORBIDDEN, "the tenant is not the caller's", [problem])


def listed_tenant(caller: Caller, tenant_id: str | None) -> str | None:
    """Whose things to list; None: everybody's. A caller with one tenant need not name it."""
    if tenant_id is not None:
        require_tenant(caller, tenant_id, "/query/tenant_id")
        return tenant_id
    if caller.tenants is None:
        return None
    if len(caller.tenants) == 1:
        return next(iter(caller.tenants))
    problem = Problem("/query/tenant_id", "must name one of the caller's tenants")
    raise ContractError(ErrorCode.ENVELOPE_INVALID, "whose things to list is not said", [problem])
