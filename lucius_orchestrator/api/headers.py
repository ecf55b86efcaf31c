"""Headers of a request, read from the ASGI scope."""

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError
from starlette.types import Scope

from lucius_contract.envelope import Visible
from lucius_contract.errors import ContractError, ErrorCode, Problem

Entropy = Callable[[int], bytes]

CORRELATION = b"x-correlation-id"
IDEMPOTENCY_KEY = b"idempotency-key"
KEY_POINTER = "/header/Idempotency-Key"

_VISIBLE = re.compile(rb"[\x21-\x7e]{1,128}")
_TRACEPARENT = re.compile(
    rb"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
)
_KEY = TypeAdapter[str](Annotated[str, Field(min_length=1, max_length=256), Visible])


def header(scope: Scope, name: bytes) -> bytes | None:
    """The first header of that name, which is given in lower case."""
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return None


def authorization(scope: Scope) -> str | None:
    value = header(scope, b"authorization")
    return None if value is None else value.decode("latin-1")


def correlation_id(scope: Scope, entropy: Entropy) -> str:
    """The client's, if it is fit for logs, else a new one."""
    given = header(scope, CORRELATION)
    if given is not None and _VISIBLE.fullmatch(given):
        return given.decode("ascii")
    return entropy(16).hex()


def traceparent(scope: Scope, entropy: Entropy) -> str:
    """The client's, if it is a trace context, else the beginning of a new trace."""
    given = header(scope, b"traceparent")
    if given is not None and _TRACEPARENT.fullmatch(given):
        return given.decode("ascii")
    return f"00-{entropy(16).hex()}-{entropy(8).hex()}-01"


def idempotency_key(scope: Scope) -> str | None:
    given = header(scope, IDEMPOTENCY_KEY)
    if given is None:
        return None
    try:
        return _KEY.validate_python(given.decode())
    except ValidationError as error:
        raise _not_a_key(error.errors()[0]["msg"]) from error
    except UnicodeDecodeError as error:
        raise _not_a_key("must be UTF-8") from error


def _not_a_key(reason: str) -> ContractError:
    problem = Problem(KEY_POINTER, reason)
    return ContractError(ErrorCode.ENVELOPE_INVALID, "not an idempotency key", [problem])
