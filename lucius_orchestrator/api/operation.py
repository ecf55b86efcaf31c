"""What is said of an operation of the API."""

from enum import StrEnum
from typing import Literal, NamedTuple

from lucius_contract.documents import Document
from lucius_contract.envelope import Envelope
from lucius_contract.errors import ErrorCode
from lucius_orchestrator.api.problems import HttpCode
from lucius_orchestrator.api.shapes import Shape
from lucius_orchestrator.security.callers import Verb

Code = ErrorCode | HttpCode


class Guard(StrEnum):
    """What a caller must show."""

    NOBODY = "nobody"
    CALLER = "caller"
    CALLBACK_TOKEN = "callback_token"  # noqa: S105 - the name of a kind of credential
    SIGNED_URL = "signed_url"


class Parameter(NamedTuple):
    name: str
    place: Literal["path", "query"]
    meaning: str
    example: str


class Operation(NamedTuple):
    """`shape` is what a good answer holds (None: not JSON), `codes` are the refusals beyond those
    that every operation with its guard can meet, `others` are further statuses with their meaning.
    `bytes` is the media type of a body that is no document; `parameters` are those of plain
    endpoints, which FastAPI does not know.
    """

    method: str
    path: str
    id: str
    summary: str
    shape: type[Shape] | None
    status: int = 200
    verb: Verb | None = None
    guard: Guard = Guard.CALLER
    codes: tuple[Code, ...] = ()
    body: type[Document] | None = None
    headers: tuple[str, ...] = ()
    answers_with: tuple[str, ...] = ()
    others: tuple[tuple[int, str], ...] = ()
    bytes: str | None = None
    parameters: tuple[Parameter, ...] = ()

    @property
    def tag(self) -> str:
        if self.body is Envelope:
            return "jobs"
        return self.path.split("/")[2] if self.path.startswith("/v1/") else "process"
