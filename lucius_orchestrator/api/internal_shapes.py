"""What the internal API is sent. Unknown members are tolerated, as everywhere."""

from pydantic import Field

from lucius_contract.documents import Document, Instant, Name, Whole
from lucius_contract.messages import AttemptNo
from lucius_contract.routing import LANES
from lucius_orchestrator.domain.workflow import TimerName
from lucius_orchestrator.ports.invoker import AttemptName


class AttemptIdentity(Document):
    job_id: Name = Field(alias="jobId")
    step_id: Name = Field(alias="stepId")
    tenant_id: Name
    attempt_no: AttemptNo
    lease_id: Name

    @property
    def name(self) -> AttemptName:
        return AttemptName(
            self.job_id, self.tenant_id, self.step_id, self.attempt_no, self.lease_id
        )


class AttemptAsked(AttemptIdentity):
    """Open this attempt, under this lease."""

    lease_expires_at: Instant


class PublishAsked(Document):
    """Publish the directive of an attempt. What goes out is what was committed with the attempt;
    of what stands here, only the identity counts."""

    directive: AttemptIdentity
    lane: int | None = Field(default=None, ge=0, lt=LANES)


class DeadlinePassed(Document):
    """`attempt_no` is 0 and there is no lease as long as the step has had no attempt."""

    event: TimerName
    step_id: Name = Field(alias="stepId")
    attempt_no: Whole = 0
    lease_id: str = Field(default="", max_length=128)
    deadline: Instant

    def name(self, job_id: str) -> AttemptName:
        return AttemptName(job_id, "", self.step_id, self.attempt_no, self.lease_id)


class CommandAsked(Document):
    by: str | None = Field(default=None, max_length=256)
