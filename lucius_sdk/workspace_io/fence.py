"""Who may publish: the order of the runs that may all want to write to one place."""

import json
from typing import NamedTuple, Self
from urllib.parse import quote, unquote

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError

UNKNOWN_TENANT = ""
"""Of fences that were written before they carried a tenant; no tenant has this id."""


class Fence(NamedTuple):
    """One run of one attempt. Those of one tenant are compared member by member, in this order: ids
    of jobs and steps sort by when they were made, attempts and epochs count up. A lower fence never
    replaces what a higher one has published; an equal one is the same run, which may publish again.
    """

    tenant_id: str
    job_id: str
    step_id: str
    attempt_no: int
    epoch: int

    def to_line(self) -> bytes:
        return json.dumps(self._asdict(), ensure_ascii=False).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Self:
        """ValueError if it is not one."""
        match json.loads(line):
            case {
                "job_id": str(job_id),
                "step_id": str(step_id),
                "attempt_no": int(attempt_no),
                "epoch": int(epoch),
                **others,
            }:
                tenant_id = others.get("tenant_id", UNKNOWN_TENANT)
                if isinstance(tenant_id, str):
                    return cls(tenant_id, job_id, step_id, attempt_no, epoch)
        raise ValueError("not a fence")

    def to_header(self) -> str:
        """For where only ASCII goes, and people may look: `acme/job_1/step_03/2/1`."""
        ids = "/".join(quote(one, safe="") for one in self[:3])
        return f"{ids}/{self.attempt_no}/{self.epoch}"

    @classmethod
    def from_header(cls, text: str) -> Self:
        """ValueError if it is not one."""
        *ids, attempt_no, epoch = (unquote(part, errors="strict") for part in text.split("/"))
        tenant_id, job_id, step_id = ids if len(ids) > 2 else (UNKNOWN_TENANT, *ids)
        return cls(tenant_id, job_id, step_id, int(attempt_no), int(epoch))


def check_may_replace(fence: Fence, stored: Fence) -> None:
    """OUTPUT_CONFLICT if what is stored is of newer work, or of another tenant.

    Whose a fence without a tenant is, only its job can tell: another job does not replace it.
    """
    if stored.tenant_id == UNKNOWN_TENANT and stored.job_id == fence.job_id:
        stored = stored._replace(tenant_id=fence.tenant_id)
    if stored.tenant_id == UNKNOWN_TENANT:
        raise NonRetryableError(
            ErrorCode.OUTPUT_CONFLICT,
            "an earlier release has published there, and did not say for which tenant: look whose"
            " it is, then remove it, or name another output",
        )
    if stored.tenant_id != fence.tenant_id:
        raise NonRetryableError(
            ErrorCode.OUTPUT_CONFLICT, "another tenant has published there: name another output"
        )
    if fence < stored:
        raise NonRetryableError(
            ErrorCode.OUTPUT_CONFLICT,
            f"newer work has published there: attempt {stored.attempt_no},"
            f" run {stored.epoch} of {stored.step_id} of {stored.job_id}",
        )


def unreadable(where: str) -> NonRetryableError:
    """A fence that is none is never overwritten: whose it is, only people can tell."""
    return NonRetryableError(
        ErrorCode.OUTPUT_CONFLICT,
        f"the fence {where} cannot be read: look who published, then remove it",
    )
