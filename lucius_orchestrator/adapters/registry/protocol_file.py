"""One protocol from one file."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from lucius_contract.canonical import resolve_arrows
from lucius_orchestrator.adapters.registry.document import Document
from lucius_orchestrator.adapters.registry.members import (
    Field,
    Fields,
    Member,
    delay,
    duration,
    list_of,
    one_of,
    read_fields,
    spelled,
    text,
    whole,
)
from lucius_orchestrator.adapters.registry.payload_schema import payload_schema
from lucius_orchestrator.domain.aggregate import ReplyVia, StepPolicy
from lucius_orchestrator.engine.payload_check import payload_check
from lucius_orchestrator.ports.registry import ProtocolDefinition, ProtocolStep

STEPS_LIMIT = 30
ALIASES_LIMIT = 100
ATTEMPTS_LIMIT = 100
BACKOFF_LIMIT = 30

_protocol_id = text(
    r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}", "1 to 128 letters, digits, dots, underscores or hyphens"
)
_step_type = text(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "1 to 64 letters, digits, underscores or hyphens"
)
_service = text(
    r"[a-z0-9]([a-z0-9-]{0,48}[a-z0-9])?", "1 to 50 lower-case letters, digits or inner hyphens"
)
_VISIBLE, _OR_BLANK = r"[^\s\x00-\x1f\x7f-\x9f]", r"[^\x00-\x1f\x7f-\x9f]"
_alias = text(
    f"{_VISIBLE}({_OR_BLANK}{{0,254}}{_VISIBLE})?",
    "1 to 256 characters without control characters or blanks around them",
)


def _request_type(member: Member) -> str | None:
    found: str | None = _alias(member)
    if found and found != resolve_arrows(found):
        member.refuse(f"write {resolve_arrows(found)}; the spelling with arrows is always known")
    return found


def _version(member: Member) -> str | None:
    if isinstance(member.value, str) and 0 < len(member.value) <= 64:
        return member.value
    member.must('1 to 64 characters of text; a number needs quotes, as in "1.0"')
    return None


TIMINGS: Fields = {
    "ack_timeout": Field(duration),
    "lease": Field(duration),
    "heartbeat": Field(duration),
    "timeout": Field(duration),
    "max_attempts": Field(whole(1, ATTEMPTS_LIMIT)),
    "backoff": Field(list_of(delay, 1, BACKOFF_LIMIT)),
    "reply_via": Field(one_of(ReplyVia)),
}
STEP: Fields = {
    "step_type": Field(_step_type, required=True),
    "service": Field(_service, required=True),
    "payload_schema": Field(payload_schema, required=True),
    **TIMINGS,
}


def read_protocol(document: Document, defaults: StepPolicy) -> ProtocolDefinition | None:
    """The protocol, or None when the document has problems; it then names all of them."""
    found = read_fields(Member(document, (), document.value), _fields(defaults))
    if document.problems:
        return None
    _check_step_types(document, found["steps"])
    return ProtocolDefinition(
        protocol_id=found["protocol_id"],
        version=found["version"],
        request_type=found["request_type"],
        aliases=found.get("aliases", ()),
        steps=found["steps"],
    )


def _fields(defaults: StepPolicy) -> Fields:
    def read_step(member: Member) -> ProtocolStep | None:
        return _step(member, defaults)

    return {
        "protocol_id": Field(_protocol_id, required=True),
        "version": Field(_version, required=True),
        "request_type": Field(_request_type, required=True),
        "aliases": Field(list_of(_alias, 0, ALIASES_LIMIT)),
        "steps": Field(list_of(read_step, 1, STEPS_LIMIT), required=True),
    }


def _step(member: Member, defaults: StepPolicy) -> ProtocolStep | None:
    before = len(member.document.problems)
    found = read_fields(member, STEP)
    if len(member.document.problems) > before:
        return None
    given = {_POLICY_NAMES.get(name, name): found[name] for name in TIMINGS if name in found}
    policy = replace(defaults, **given)
    for names, reason in _contradictions(policy):
        named = [name for name in names if name in found]
        member.document.refuse((*member.place, *named[:1]), reason)
    schema: dict[str, Any] = found["payload_schema"]
    check = payload_check(schema)
    return ProtocolStep(found["step_type"], found["service"], schema, policy, check)


_POLICY_NAMES = {"timeout": "ceiling"}


def _contradictions(policy: StepPolicy) -> Iterator[tuple[tuple[str, str], str]]:
    """What does not go together, by the members that may have said so."""
    heartbeat, lease, timeout = policy.heartbeat_interval, policy.lease, policy.ceiling
    if heartbeat >= lease:
        reason = f"a heartbeat every {spelled(heartbeat)} cannot extend a lease of {spelled(lease)}"
        yield ("heartbeat", "lease"), reason
    if lease > timeout:
        reason = f"a lease of {spelled(lease)} is longer than the timeout of {spelled(timeout)}"
        yield ("lease", "timeout"), reason


def _check_step_types(document: Document, steps: tuple[ProtocolStep, ...]) -> None:
    first: dict[str, int] = {}
    for index, step in enumerate(steps):
        earlier = first.setdefault(step.payload_key, index)
        if earlier != index:
            reason = f"{step.step_type} has the payload key of steps[{earlier}], {step.payload_key}"
            document.refuse(("steps", index, "step_type"), reason)
