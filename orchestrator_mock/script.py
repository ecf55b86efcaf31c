"""Scripts: a list of things to do to a service and of what must come of it.

- send: {as: first, held: true}
- expect: {of: first, what: ACK}
- fault: {name: callback-500, types: [RESULT], count: 2}
- release: first
- expect: {of: first, what: RESULT, status: SUCCEEDED}
- duplicate: first
- settled: first
- expect: {of: first, what: RESULT, times: 1}
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import pydantic
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from lucius_contract.canonical import pointer_to
from orchestrator_mock.faults import Fault
from orchestrator_mock.orders import Kind
from orchestrator_mock.recording import Entry, What
from orchestrator_mock.stage import Sending, Stage

_WITHIN = 30.0


class ScriptError(Exception):
    """The script cannot be played; the text says where and why."""


class ScriptFailed(Exception):
    """What was expected did not come."""


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class NamedSending(Sending):
    name: str = Field(default="last", alias="as")


class Burst(_Document):
    """Many jobs at once, each of a tenant of its own. Their name means all of them."""

    name: str = Field(default="burst", alias="as")
    count: Annotated[int, Field(ge=1, le=10_000)]
    kind: Kind = Kind.VALID
    payload: dict[str, Any] = {}
    held: bool = False


class FaultSpec(_Document):
    name: str
    count: Annotated[int, Field(ge=1)] | None = 1
    types: list[Literal["ACK", "RESULT", "HEARTBEAT"]] = []
    of: str | None = None
    seconds: Annotated[float, Field(gt=0)] = 3.0


class Expected(_Document):
    """`times` asks for exactly that many, as of now, `at_most` for no more, as of now; without
    either, at least one must come."""

    of: str
    what: What
    status: str | None = None
    code: str | None = None
    times: Annotated[int, Field(ge=0)] | None = None
    at_most: Annotated[int, Field(ge=0)] | None = None
    within: Annotated[float, Field(gt=0)] = _WITHIN


class Step(_Document):
    """Exactly one of its members."""

    send: NamedSending | None = None
    burst: Burst | None = None
    duplicate: str | None = None
    attempt: str | None = None
    expire: str | None = None
    cancel: str | None = None
    hold: str | None = None
    release: str | None = None
    settled: str | None = None
    fault: FaultSpec | None = None
    clear: list[str] | None = None
    expect: Expected | None = None

    @pydantic.model_validator(mode="after")
    def _is_one(self) -> "Step":
        if len(self.model_fields_set) != 1:
            raise ValueError(f"a step has exactly one of {', '.join(type(self).model_fields)}")
        return self


_STEPS = TypeAdapter(list[Step])


def read_script(value: object) -> list[Step]:
    """Of a list of mappings, as YAML or JSON gives it. `ScriptError`."""
    try:
        return _STEPS.validate_python(value)
    except pydantic.ValidationError as error:
        told = [f"{pointer_to(e['loc'])}: {e['msg']}" for e in error.errors(include_url=False)]
        raise ScriptError("the script cannot be read: " + "; ".join(told)) from error


class Player:
    """Plays scripts on a stage. Names that a script gives its jobs hold until they are given
    anew."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._names: dict[str, tuple[str, ...]] = {}

    async def play(self, steps: Sequence[Step]) -> None:
        """`ScriptError`, `ScriptFailed`."""
        for number, step in enumerate(steps, start=1):
            name = next(iter(step.model_fields_set))
            try:
                await self._do(name, getattr(step, name))
            except (ScriptError, ScriptFailed) as error:
                raise type(error)(f"step {number}, {name}: {error}") from error

    async def _do(self, name: str, value: Any) -> None:
        verb: Callable[[str], object] | None = {
            "duplicate": self._stage.duplicate,
            "attempt": self._stage.next_attempt,
            "expire": self._stage.expire,
            "cancel": self._stage.cancel,
            "hold": self._stage.hold,
            "release": self._stage.release,
        }.get(name)
        if verb is not None:
            for job_id in self._jobs(value):
                verb(job_id)
            return
        waiting: Mapping[str, Callable[[Any], Awaitable[None]]] = {
            "send": self._send,
            "burst": self._burst,
            "settled": self._settled,
            "fault": self._fault,
            "clear": self._clear,
            "expect": self._expect,
        }
        await waiting[name](value)

    async def _send(self, sending: NamedSending) -> None:
        given = sending.model_dump(exclude={"name"}, exclude_unset=True)
        issued = self._stage.send(Sending.model_validate(given))
        self._names[sending.name] = (issued.job_id,)

    async def _burst(self, burst: Burst) -> None:
        one = Sending(kind=burst.kind, payload=burst.payload, held=burst.held)
        tenants = (f"burst-{number}" for number in range(burst.count))
        self._names[burst.name] = tuple(
            self._stage.send(one.model_copy(update={"tenant_id": tenant})).job_id
            for tenant in tenants
        )

    async def _settled(self, name: str) -> None:
        issued = [self._stage.job(job_id).issued for job_id in self._jobs(name)]
        mock = self._stage.mock
        if not await mock.recording.wait(
            lambda: all(map(mock.is_settled, issued)) or None, _WITHIN
        ):
            raise ScriptFailed(f"the message of {name!r} was not settled within {_WITHIN:g} s")

    async def _fault(self, spec: FaultSpec) -> None:
        job_id = None if spec.of is None else self._job(spec.of)
        try:
            fault = Fault(spec.name, spec.count, frozenset(spec.types), job_id, spec.seconds)
        except ValueError as error:
            raise ScriptError(str(error)) from error
        await self._stage.mock.add_fault(fault)

    async def _clear(self, names: list[str]) -> None:
        await self._stage.mock.clear_faults(*names)

    async def _expect(self, expected: Expected) -> None:
        job_ids, recording = self._jobs(expected.of), self._stage.mock.recording

        def found() -> list[Entry]:
            seen = [e for job_id in job_ids for e in recording.of(job_id, expected.what)]
            return [entry for entry in seen if _is_meant(entry, expected)]

        if expected.times is None and expected.at_most is None:
            await recording.wait(lambda: found() or None, expected.within)
        if (failed := _failed(expected, len(found()))) is not None:
            of_jobs = [entry for entry in recording if entry.job_id in job_ids]
            seen = "; ".join(entry.shown() for entry in of_jobs[-20:])
            raise ScriptFailed(f"{failed}. Seen: {seen}")

    def _jobs(self, name: str) -> tuple[str, ...]:
        found = self._names.get(name)
        if found is None:
            raise ScriptError(f"nothing was sent as {name!r} before")
        return found

    def _job(self, name: str) -> str:
        found = self._jobs(name)
        if len(found) > 1:
            raise ScriptError(f"{name!r} means {len(found)} jobs")
        return found[0]


def _failed(expected: Expected, number: int) -> str | None:
    if expected.times is not None:
        return None if number == expected.times else f"{number} came, not {expected.times}"
    if expected.at_most is not None:
        within = number <= expected.at_most
        return None if within else f"{number} came, more than {expected.at_most}"
    return None if number else f"none came within {expected.within:g} s"


def _is_meant(entry: Entry, expected: Expected) -> bool:
    body: Mapping[str, Any] = entry.body or {}
    error = body.get("error")
    code = error.get("code") if isinstance(error, Mapping) else None
    return expected.status in (None, body.get("status")) and expected.code in (None, code)
