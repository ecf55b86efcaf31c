"""How the rows of a job are written by ledgers that keep text and columns.

What never changes after creation is one document per job, the *plan*; what changes are columns, so
that a commit writes the fields that it changed and nothing else. Members that a later release adds
to a document are passed over when it is read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from functools import lru_cache
from typing import Any

import pydantic_core
from pydantic import TypeAdapter

from lucius_contract.audit import EventType
from lucius_contract.routing import Route
from lucius_contract.states import JobState, StepState
from lucius_contract.transitions import StepTrigger
from lucius_orchestrator.domain.aggregate import (
    Aggregate,
    Attempt,
    Engine,
    Job,
    Step,
    StepPolicy,
    Turn,
)
from lucius_orchestrator.domain.decision import AuditEvent, JobChanges, StepChanges

JOB_COLUMNS = tuple(JobChanges.__annotations__)
STEP_COLUMNS = tuple(StepChanges.__annotations__)
"""The fields that decisions change; every ledger has a column for each."""

TIME_COLUMNS = frozenset(
    {
        "updated_at",
        "completed_at",
        "lease_expires_at",
        "ack_deadline",
        "ceiling_at",
        "next_attempt_at",
    }
)
JSON_COLUMNS = frozenset({"attempts", "artifacts", "result_ref", "progress"})

_PLAN_OF_JOB = tuple(f.name for f in fields(Job) if f.name not in JOB_COLUMNS)
_PLAN_OF_STEP = tuple(f.name for f in fields(Step) if f.name not in STEP_COLUMNS)
_OWN_OF_STEP = frozenset(_PLAN_OF_STEP) - {"policy"}
_ATTEMPT_TIMES = ("dispatched_at", "sent_at", "acknowledged_at", "completed_at")
_ROUTE = Attempt._fields.index("route")
_route = TypeAdapter(Route).validate_python
_policy = TypeAdapter(StepPolicy).validate_python
_instant = TypeAdapter(datetime).validate_python


def to_json(value: Any) -> str:
    return pydantic_core.to_json(value).decode()


def encode_plan(aggregate: Aggregate) -> str:
    """The fields of the job and of its steps that no decision changes.

    Steps of one job share refs and route, and jobs of one protocol share policies: what a step has
    in common with the job is not written again, and a policy is encoded once.
    """
    job = aggregate.job
    shared: dict[str, Any] = {"workspace_ref": aggregate.steps[0].workspace_ref}
    shared.update((name, getattr(job, name)) for name in _PLAN_OF_JOB)
    steps = ",".join(_encode_step(step, shared) for step in aggregate.steps)
    shared["engine"], shared["route"] = str(job.engine), _plain_route(job.route)
    return f'{{"job":{to_json(shared)},"steps":[{steps}]}}'


def _encode_step(step: Step, shared: Mapping[str, Any]) -> str:
    own = {
        name: value
        for name, value in step.__dict__.items()
        if name in _OWN_OF_STEP and (name not in shared or shared[name] is not value)
    }
    return f'{to_json(own)[:-1]},"policy":{_encode_policy(step.policy)}}}'


def _plain_route(route: Route) -> dict[str, Any]:
    """Without enums, which `to_json` is slow to see through."""
    return {
        "mode": str(route.mode),
        "routing_key_used": route.routing_key_used,
        "lane": route.lane,
        "decision_source": str(route.decision_source),
        "decision_reason": route.decision_reason,
    }


@lru_cache(maxsize=1024)
def _encode_policy(policy: StepPolicy) -> str:
    return to_json(policy)


def encode_attempts(attempts: Sequence[Attempt]) -> str:
    """By position, without the route: that is the step's, which never changes. A later release
    may add fields at the end."""
    return to_json([_plain_attempt(attempt) for attempt in attempts])


def _plain_attempt(attempt: Attempt) -> list[Any]:
    number, lease_id, _, *times_and_end = attempt
    outcome, ended_by = times_and_end[4:6]
    times_and_end[4:6] = outcome and str(outcome), ended_by and str(ended_by)
    return [number, lease_id, *times_and_end]


def encode_events(events: Sequence[AuditEvent]) -> str:
    """By position; a later release may add fields at the end."""
    encoded, at, time = [], None, ""
    for event in events:
        if event.at is not at:
            at, time = event.at, event.at.isoformat()
        encoded.append(f'[{event.seq},"{time}",{_what_happened(event[2:])}')
    return f"[{','.join(encoded)}]"


@lru_cache(maxsize=1024)
def _what_happened(fields: tuple[str | int | bool | None, ...]) -> str:
    """The fields after the number and the time. Jobs that go well have them all in common."""
    return to_json(fields)[1:]


def decode_events(text: str | bytes) -> list[AuditEvent]:
    width = len(AuditEvent._fields)
    return [
        AuditEvent(seq, _instant(at), EventType(kind), *rest[: width - 3])
        for seq, at, kind, *rest in pydantic_core.from_json(text)
    ]


def decode_plan(text: str | bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The fixed fields of the job and of each step, as the constructors take them."""
    plan = pydantic_core.from_json(text)
    shared = plan["job"]
    job = _known(shared, _PLAN_OF_JOB)
    job["engine"] = Engine(job["engine"])
    job["route"] = _route(job["route"])
    job["callback_urls"] = tuple(job["callback_urls"])
    job["sla_deadline"] = _instant(job["sla_deadline"])
    job["created_at"] = _instant(job["created_at"])
    return job, [_step_plan({**shared, **step}) for step in plan["steps"]]


def decode_attempts(text: str | bytes, route: Route) -> tuple[Attempt, ...]:
    return tuple(_attempt(stored, route) for stored in pydantic_core.from_json(text))


def job_of(plan: Mapping[str, Any], columns: Mapping[str, Any]) -> Job:
    return Job(**plan, **{**columns, "state": JobState(columns["state"])})


def step_of(plan: Mapping[str, Any], columns: Mapping[str, Any]) -> Step:
    """`columns` hold JSON as text and times as datetimes."""
    decoded = dict(columns)
    decoded["state"] = StepState(columns["state"])
    turn = columns.get("turn")
    decoded["turn"] = None if turn is None else Turn(turn)
    decoded["attempts"] = decode_attempts(columns["attempts"], plan["route"])
    decoded["artifacts"] = tuple(pydantic_core.from_json(columns["artifacts"]))
    for name in ("result_ref", "progress"):
        if columns[name] is not None:
            decoded[name] = pydantic_core.from_json(columns[name])
    return Step(**plan, **decoded)


def _known(stored: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: stored[name] for name in names if name in stored}


def _step_plan(stored: Mapping[str, Any]) -> dict[str, Any]:
    step = _known(stored, _PLAN_OF_STEP)
    step["policy"] = _policy(step["policy"])
    step["route"] = _route(step["route"])
    step["created_at"] = _instant(step["created_at"])
    return step


def _attempt(stored: Sequence[Any], route: Route) -> Attempt:
    values = [*stored[:_ROUTE], route, *stored[_ROUTE:]]
    attempt = Attempt(*values[: len(Attempt._fields)])
    times: dict[str, Any] = {
        name: _instant(getattr(attempt, name))
        for name in _ATTEMPT_TIMES
        if getattr(attempt, name) is not None
    }
    outcome = attempt.outcome and StepState(attempt.outcome)
    ended_by = attempt.ended_by and StepTrigger(attempt.ended_by)
    return attempt._replace(outcome=outcome, ended_by=ended_by, **times)
