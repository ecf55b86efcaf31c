"""The API under test: the application over a plane whose services tests play, and callers with
tenants and roles of their own."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import httpx
from fastapi import FastAPI

from lucius_artifacts.artifacts import Artifacts
from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_contract.messages import Directive, Message, Reply
from lucius_contract.refs import RefPolicy
from lucius_orchestrator.api import ApiLimits, ApiParts, Check, create_app
from lucius_orchestrator.domain.directive import on_the_wire
from lucius_orchestrator.engine.backlogs import Backlogs
from lucius_orchestrator.engine.planning import PlanSettings
from lucius_orchestrator.engine.services import Services
from lucius_orchestrator.ports.registry import Snapshot
from lucius_orchestrator.security.callback_tokens import CallbackTokens
from lucius_orchestrator.security.callers import Authenticator, Caller, Role
from tests.engine.plane import OCR, SHIPPED, TENANT, Plane
from tests.runner.deadlines import DEADLINE

FOREIGN = "globex"
ALL_ROLES = frozenset(Role)
CALLERS = {
    "root": Caller("root", None, ALL_ROLES),
    "ada": Caller("ada", frozenset({TENANT}), ALL_ROLES),
    "both": Caller("both", frozenset({TENANT, "initech"}), ALL_ROLES),
    "mallory": Caller("mallory", frozenset({FOREIGN}), ALL_ROLES),
    "operator": Caller("operator", frozenset({TENANT}), frozenset({Role.OPERATE})),
    "reader": Caller("reader", frozenset({TENANT}), frozenset({Role.READ})),
    "submitter": Caller("submitter", frozenset({TENANT}), frozenset({Role.SUBMIT})),
}
QUICK = ApiLimits(
    stream_interval=timedelta(milliseconds=5), stream_keepalive=timedelta(milliseconds=10)
)
LIFE = timedelta(days=2)
OFF = "artifacts are off: set LUCIUS_ARTIFACTS_STORE"


class NamedCallers:
    """A bearer's token is the caller's name."""

    def __init__(self) -> None:
        self.away = False

    async def authenticate(self, authorization: str | None) -> Caller:
        if self.away:
            raise ContractError(ErrorCode.UNAVAILABLE, "the keys cannot be read")
        caller = CALLERS.get((authorization or "").removeprefix("Bearer "))
        if caller is None:
            raise ContractError(ErrorCode.UNAUTHENTICATED, "who are you?")
        return caller


class Protocols:
    """A registry that tests set."""

    def __init__(self) -> None:
        self.current = SHIPPED

    def snapshot(self) -> Snapshot:
        return self.current


def no_webhooks(urls: Sequence[str]) -> None:
    problems = [
        Problem(f"/callback_urls/{number}", "not allowed")
        for number, url in enumerate(urls)
        if "allowed.example" not in url
    ]
    if problems:
        raise ContractError(ErrorCode.REF_FORBIDDEN, "a webhook is against policy", problems)


class Stage:
    def __init__(
        self,
        plane: Plane,
        limits: ApiLimits = QUICK,
        artifacts: Artifacts | None = None,
        authenticator: Authenticator | None = None,
    ) -> None:
        self.plane = plane
        self.registry = Protocols()
        self.callers = NamedCallers()
        self.checks = [Check("ledger", True, "answers")]
        self.tokens = CallbackTokens([b"k" * 32], plane.clock)
        self.backlogs = Backlogs(plane.engine.ledger, lambda: plane.clock().timestamp())
        self.app: FastAPI = create_app(
            ApiParts(
                engine=plane.engine,
                registry=self.registry,
                authenticator=authenticator or self.callers,
                tokens=self.tokens,
                plan=PlanSettings("az://workspace", engine=plane.drives),
                refs=RefPolicy(),
                check_webhooks=no_webhooks,
                services=Services(
                    plane.engine.traffic, self.backlogs, self.registry.snapshot, plane.clock
                ),
                steering=plane.steering,
                readiness=self._readiness,
                metrics=lambda: b"lucius_jobs_submitted_total 1.0\n",
                limits=limits,
                artifacts=artifacts,
                artifacts_off=OFF,
            )
        )

    async def _readiness(self) -> Sequence[Check]:
        return self.checks

    def client(self, caller: str | None = "ada", base_url: str | None = None) -> httpx.AsyncClient:
        """In the process itself, or over a socket where the application is served."""
        headers = {} if caller is None else {"Authorization": f"Bearer {caller}"}
        if base_url is not None:
            return httpx.AsyncClient(base_url=base_url, headers=headers, timeout=DEADLINE)
        transport = httpx.ASGITransport(self.app)
        return httpx.AsyncClient(transport=transport, base_url="http://api", headers=headers)

    async def ask(
        self, method: str, path: str, caller: str | None = "ada", **options: Any
    ) -> httpx.Response:
        async with self.client(caller) as client:
            return await client.request(method, path, **options)

    async def get(self, path: str, caller: str | None = "ada", **options: Any) -> httpx.Response:
        return await self.ask("GET", path, caller, **options)

    async def post(self, path: str, caller: str | None = "ada", **options: Any) -> httpx.Response:
        return await self.ask("POST", path, caller, **options)

    async def submit(self, caller: str = "ada", **members: Any) -> httpx.Response:
        return await self.post("/v1/orchestrate", caller, json=OCR | members)

    async def submitted(self, caller: str = "ada", **members: Any) -> str:
        answer = await self.submit(caller, **members)
        assert answer.status_code == 202, answer.text
        job_id: str = answer.json()["jobId"]
        return job_id

    def moment(self, **ahead: float) -> str:
        """As the API writes it."""
        return on_the_wire(self.plane.clock() + timedelta(**ahead))

    async def reply(
        self, reply: Reply, attempt: Message | Directive | None = None
    ) -> httpx.Response:
        """As a service sends it, with the token of `attempt`."""
        of = attempt or reply
        token = self.tokens.issue(
            of.job_id, of.step_id, of.attempt_no, of.lease_id, self.plane.clock() + LIFE
        )
        path = f"/v1/callbacks/{reply.type.lower()}"
        return await self.post(path, token, content=reply.to_bytes())


def code(answer: httpx.Response) -> tuple[int, str]:
    """Status and code of a problem, which is a whole one."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    body = answer.json()
    assert body.keys() == {
        "type",
        "title",
        "status",
        "detail",
        "code",
        "errors",
        "correlation_id",
    }
    assert body["status"] == answer.status_code
    assert body["correlation_id"] == answer.headers["x-correlation-id"]
    return answer.status_code, body["code"]


def pointers(answer: httpx.Response) -> list[str]:
    return [error["pointer"] for error in answer.json()["errors"]]
