"""Verbs for scripts and for other languages: what to send is a document, jobs are known by id."""

import base64
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from lucius_contract.errors import ContractError, ErrorCode
from lucius_orchestrator.domain.aggregate import ReplyVia
from orchestrator_mock.mock import Issued, Mock
from orchestrator_mock.orders import Kind, Order
from orchestrator_mock.refs import ServedRef

Seconds = Annotated[float, Field(gt=0, le=86_400)]
_LONGEST_BURST = 10_000


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Served(_Document):
    """A document for the service to read."""

    name: str = "input.txt"
    text: str = "a text"
    base64: str | None = None
    """Instead of text."""
    media_type: str = "text/plain"

    def content(self) -> bytes:
        if self.base64 is None:
            return self.text.encode()
        return base64.b64decode(self.base64, validate=True)


class Sending(_Document):
    """A directive to send. The step type and the way to reply are the mock's unless given."""

    kind: Kind = Kind.VALID
    copies: Annotated[int, Field(ge=1, le=_LONGEST_BURST)] = 1
    """Of the same directive."""
    step_type: str | None = None
    payload: dict[str, Any] = {}
    tenant_id: str = "tenant"
    """Decides the lane."""
    input: Served = Served()
    held: bool = False
    """What it reads is not given before it is released."""
    prior_artifacts: dict[str, list[Served]] = {}
    reply_via: ReplyVia | None = None
    ack_timeout_seconds: Seconds = 60
    lease_seconds: Seconds = 60
    heartbeat_seconds: Seconds = 20
    correlation_id: str | None = None
    traceparent: str | None = None


class Defaults(NamedTuple):
    service: str
    step_type: str
    reply_via: ReplyVia = ReplyVia.HTTP


class Played(NamedTuple):
    """A job on the stage: the directive of its last attempt, and what it reads."""

    order: Order
    issued: Issued
    refs: Sequence[ServedRef]


class Stage:
    def __init__(self, mock: Mock, defaults: Defaults) -> None:
        self.mock = mock
        self._defaults = defaults
        self._jobs: dict[str, Played] = {}

    def job(self, job_id: str) -> Played:
        found = self._jobs.get(job_id)
        if found is None:
            raise ContractError(ErrorCode.JOB_NOT_FOUND, f"there is no job {job_id}")
        return found

    @property
    def jobs(self) -> Sequence[str]:
        return tuple(self._jobs)

    def send(self, sending: Sending, *, publish: bool = True) -> Issued:
        job_id = self.mock.new_job_id()
        refs: list[ServedRef] = []

        def serve(one: Served) -> ServedRef:
            ref = self.mock.serve(
                one.name,
                one.content(),
                job_id=job_id,
                media_type=one.media_type,
                held=sending.held,
            )
            refs.append(ref)
            return ref

        input_ref = {"uri": serve(sending.input).uri}
        prior = {
            step: [serve(one).artifact() for one in written]
            for step, written in sending.prior_artifacts.items()
        }
        order = replace(self._order(sending), input_ref=input_ref, prior_artifacts=prior)
        issued = self.mock.send(
            order, sending.kind, copies=sending.copies, job_id=job_id, publish=publish
        )
        self._jobs[job_id] = Played(order, issued, tuple(refs))
        return issued

    def duplicate(self, job_id: str, copies: int = 1) -> Issued:
        """The directive of the last attempt, once more."""
        issued = self.job(job_id).issued
        self.mock.publish(issued, copies)
        return issued

    def next_attempt(self, job_id: str) -> Issued:
        played = self.job(job_id)
        issued = self.mock.next_attempt(played.issued, played.order)
        self._jobs[job_id] = played._replace(issued=issued)
        return issued

    def expire(self, job_id: str) -> None:
        self.job(job_id)
        self.mock.expire(job_id)

    def cancel(self, job_id: str) -> None:
        self.job(job_id)
        self.mock.cancel(job_id)

    def hold(self, job_id: str) -> None:
        for ref in self.job(job_id).refs:
            ref.hold()

    def release(self, job_id: str) -> None:
        for ref in self.job(job_id).refs:
            ref.release()

    def _order(self, sending: Sending) -> Order:
        return Order(
            self._defaults.service,
            sending.step_type or self._defaults.step_type,
            payload=sending.payload,
            tenant_id=sending.tenant_id,
            reply_via=sending.reply_via or self._defaults.reply_via,
            ack_timeout=timedelta(seconds=sending.ack_timeout_seconds),
            lease=timedelta(seconds=sending.lease_seconds),
            heartbeat=timedelta(seconds=sending.heartbeat_seconds),
            correlation_id=sending.correlation_id,
            traceparent=sending.traceparent,
        )
