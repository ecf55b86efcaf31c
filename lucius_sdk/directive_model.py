"""Directives as they arrive: read, owned, and with a payload that the team's model understands.

DirectiveRefused             dead-letter the message, with `reason` and `description`
├── DirectiveUnreadable      no directive of this contract
└── StepTypeNotOwned         somebody else's work
"""

from collections.abc import Collection
from enum import StrEnum
from typing import Any, TypeVar, overload

import pydantic_core
from pydantic import BaseModel, ValidationError

from lucius_contract.errors import ContractError, ErrorCode
from lucius_contract.messages import Directive, parse_directive
from lucius_sdk.error_model import NonRetryableError, described, presentable, told

__all__ = [
    "Directive",
    "DirectiveRefused",
    "DirectiveUnreadable",
    "RefusalReason",
    "StepTypeNotOwned",
    "read_directive",
    "read_payload",
]

Model = TypeVar("Model", bound=BaseModel)


class RefusalReason(StrEnum):
    """Why a message is dead-lettered."""

    DIRECTIVE_INVALID = "DIRECTIVE_INVALID"
    SCHEMA_VERSION_UNSUPPORTED = "SCHEMA_VERSION_UNSUPPORTED"
    DIRECTIVE_TOO_LARGE = "DIRECTIVE_TOO_LARGE"
    STEP_TYPE_NOT_OWNED = "STEP_TYPE_NOT_OWNED"


class DirectiveRefused(Exception):
    def __init__(self, reason: RefusalReason, description: str) -> None:
        super().__init__(reason, description)
        self.reason = reason
        self.description = description

    def __str__(self) -> str:
        return f"{self.reason}: {self.description}"


class DirectiveUnreadable(DirectiveRefused):
    """The message is no directive that this version can read."""


class StepTypeNotOwned(DirectiveRefused):
    """A directive for work that this service has no handler for."""

    def __init__(self, step_type: str, owned: Collection[str]) -> None:
        names = ", ".join(sorted(owned)) or "nothing"
        description = presentable(f"a directive for {step_type}; this service runs {names}")
        super().__init__(RefusalReason.STEP_TYPE_NOT_OWNED, description)
        self.args = (step_type, owned)


_REASONS = {
    ErrorCode.SCHEMA_VERSION_UNSUPPORTED: RefusalReason.SCHEMA_VERSION_UNSUPPORTED,
    ErrorCode.TOO_LARGE: RefusalReason.DIRECTIVE_TOO_LARGE,
}


def read_directive(body: bytes) -> Directive:
    try:
        return parse_directive(body)
    except ContractError as error:
        reason = _REASONS.get(error.code, RefusalReason.DIRECTIVE_INVALID)
        raise DirectiveUnreadable(reason, _described(error)) from error


def _described(error: ContractError) -> str:
    where = "; ".join(f"{p.pointer or '(document)'} {p.message}" for p in error.problems)
    return presentable(f"{error.message}: {where}" if where else error.message)


@overload
def read_payload(model: type[Model], directive: Directive) -> Model: ...
@overload
def read_payload(model: None, directive: Directive) -> dict[str, Any]: ...
def read_payload(model: type[BaseModel] | None, directive: Directive) -> BaseModel | dict[str, Any]:
    """The payload as the team's model has it, without a model as it came. What breaks the model
    fails the step for good: NonRetryableError, code PAYLOAD_INVALID; and so does a model that is
    itself broken, code INTERNAL."""
    if model is None:
        return directive.payload
    body = pydantic_core.to_json(directive.payload)
    try:
        # As JSON, so that a model in strict mode still reads times and tuples from text and lists.
        return model.model_validate_json(body)
    except ValidationError as error:
        found = presentable(told(error, "/payload"))
        raise NonRetryableError(ErrorCode.PAYLOAD_INVALID, found) from error
    except Exception as error:
        found = f"the model of the payload raised {described(error)}"
        raise NonRetryableError(ErrorCode.INTERNAL, presentable(found)) from error
