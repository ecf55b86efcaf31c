"""What jobs read that somebody may delete meanwhile: it is held for them, from before a job is
created until it has ended."""

from typing import Protocol

from lucius_contract.errors import ContractError, ErrorCode, Problem

HELD = "artifact://"
"""How the uris begin of what is held."""


class Inputs(Protocol):
    async def hold(self, job_id: str, tenant_id: str, uri: str) -> None:
        """Again is no error. REF_INVALID if the tenant cannot read it."""
        ...

    async def release(self, job_id: str) -> None:
        """The job was not created after all. What cannot be released now is released later, since
        nobody knows the job."""
        ...


def ref_invalid(pointer: str, problem: str) -> ContractError:
    return ContractError(
        ErrorCode.REF_INVALID,
        "a ref names no artifact that can be used",
        [Problem(pointer, problem)],
    )
