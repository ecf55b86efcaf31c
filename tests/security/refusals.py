"""What is refused, and what a refusal must not show."""

import traceback
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager

import pytest

from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.security.callers import Caller


@contextmanager
def refused(code: ErrorCode, *, hiding: str = "") -> Iterator[None]:
    """Refused with this code; no part of the traceback, causes included, shows `hiding`."""
    with pytest.raises(ContractError) as caught:
        yield
    assert caught.value.code is code
    if hiding:
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert hiding not in _without_source_lines(shown)


async def answer(attempt: Awaitable[Caller]) -> Caller | ErrorCode:
    """The caller, or why there is none."""
    try:
        return await attempt
    except ContractError as error:
        return error.code


def _without_source_lines(shown: str) -> str:
    """The text of errors; tracebacks also quote the test that holds the secret."""
    return "\n".join(line for line in shown.splitlines() if not line.startswith("    "))
