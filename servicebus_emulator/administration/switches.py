"""What only an emulator has: whether it lives, and faults that are set from outside."""

import json
from typing import Any

from servicebus_emulator.administration.call import Call
from servicebus_emulator.administration.exchange import Refusal, Response, json_response
from servicebus_emulator.faults import Fault, FaultKind, Faults, Point

_FIELDS = {"kind", "entity", "point", "count", "delay_ms"}


def health(_call: Call) -> Response:
    return json_response(200, {"status": "ok"})


class Switches:
    """Faults as JSON: `{"kind": "drop", "entity": "topic", "point": "send", "count": 2}`."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def list(self, _call: Call) -> Response:
        return json_response(200, {"faults": [_shown(fault) for fault in self._faults.active()]})

    def add(self, call: Call) -> Response:
        """One fault, or a list of them: all or none."""
        sent = _parsed(call.request.body)
        added = [_fault(one) for one in (sent if isinstance(sent, list) else [sent])]
        for fault in added:
            self._faults.add(fault)
        return json_response(201, {"faults": [_shown(fault) for fault in added]})

    def clear(self, _call: Call) -> Response:
        self._faults.clear()
        return json_response(200, {"faults": []})


def _parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "the body is not JSON") from error


def _fault(sent: object) -> Fault:
    if not isinstance(sent, dict) or not {"kind"} <= sent.keys() <= _FIELDS:
        raise Refusal(400, f"a fault is an object with kind, and of {', '.join(sorted(_FIELDS))}")
    for name in ("count", "delay_ms"):
        if type(sent.get(name, 1)) is not int:
            raise Refusal(400, f"{name} is a whole number")
    entity = sent.get("entity")
    if entity is not None and not isinstance(entity, str):
        raise Refusal(400, "entity is the path of a queue, a topic or a subscription")
    return _built(sent, entity)


def _built(sent: dict[str, Any], entity: str | None) -> Fault:
    try:
        kind = FaultKind(sent["kind"])
        point = None if sent.get("point") is None else Point(sent["point"])
        return Fault(kind, entity, point, sent.get("count", 1), sent.get("delay_ms", 0))
    except ValueError as error:
        allowed = f"kinds: {', '.join(FaultKind)}; points: {', '.join(Point)}"
        raise Refusal(400, f"{error} ({allowed})") from error


def _shown(fault: Fault) -> dict[str, object]:
    return {
        "kind": fault.kind,
        "entity": fault.entity,
        "point": fault.point,
        "count": fault.count,
        "delay_ms": fault.delay_ms,
    }
