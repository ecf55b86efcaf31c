"""The node `$management` of an entity: what is asked about messages without a link of their own."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from servicebus_emulator.amqp import AmqpError, Array, Int, Kind, Timestamp
from servicebus_emulator.broker import (
    Abandon,
    BrokerError,
    Complete,
    DeadLetter,
    Defer,
    Delivery,
    InvalidArgument,
    Outcome,
    SessionLock,
    SessionLockLost,
)
from servicebus_emulator.faults import FaultKind, Point
from servicebus_emulator.links import conditions
from servicebus_emulator.links.encoding import encoded
from servicebus_emulator.links.faulting import struck
from servicebus_emulator.links.requests import Request, Response, Responses
from servicebus_emulator.links.rules import add_rule, listed_rules, remove_rule
from servicebus_emulator.messages import Message
from servicebus_emulator.sas import Right, Unauthorized

if TYPE_CHECKING:
    from servicebus_emulator.links.connection import Connection

_PREFIX = "com.microsoft:"
_DELETE = 0  # receiver-settle-mode: gone once delivered
_LARGEST_PEEK = 250
_PEEKED_BYTES = 1024 * 1024
_EMPTY: dict[str, object] = {}
_RIGHTS = {
    "schedule-message": Right.SEND,
    "cancel-scheduled-message": Right.SEND,
    "add-rule": Right.MANAGE,
    "remove-rule": Right.MANAGE,
    "enumerate-rules": Right.MANAGE,
}
"""What the others need is to listen."""
Body = Mapping[str, Any]


class ManagementNode:
    """Clients use it over the connection on which they receive: a session is renewed or asked about
    by the link that holds it."""

    def __init__(self, connection: "Connection", entity: str) -> None:
        self.responders: list[Responses] = []
        self._connection = connection
        self._host = connection.host
        self._entity = entity
        self._operations: dict[str, Callable[[Body], Response]] = {
            "renew-lock": self._renew_locks,
            "renew-session-lock": self._renew_session,
            "peek-message": self._peek,
            "receive-by-sequence-number": self._receive_deferred,
            "update-disposition": self._settle,
            "schedule-message": self._schedule,
            "cancel-scheduled-message": self._cancel_scheduled,
            "get-session-state": self._get_state,
            "set-session-state": self._set_state,
            "get-message-sessions": self._sessions,
            "add-rule": self._add_rule,
            "remove-rule": self._remove_rule,
            "enumerate-rules": self._rules,
        }

    def handle(self, request: Request) -> Response:
        name = str(request.properties.get("operation", "")).removeprefix(_PREFIX)
        operation = self._operations.get(name)
        if operation is None:
            return _failure(501, conditions.NOT_IMPLEMENTED, f"there is no operation {name!r}")
        try:
            self._connection.authorization.check(self._entity, _RIGHTS.get(name, Right.LISTEN))
        except Unauthorized as error:
            return _failure(401, conditions.UNAUTHORIZED, str(error))
        fault = struck(self._host, Point.MANAGE, self._entity)
        if fault is not None and fault.kind is FaultKind.REFUSE:
            return _failure(503, conditions.SERVER_BUSY, "the server is busy")
        response = self._run(operation, request.body)
        if fault is not None:
            self._connection.drop()
        return response

    def _run(self, operation: Callable[[Body], Response], body: object) -> Response:
        try:
            return operation(body if isinstance(body, dict) else {})
        except BrokerError as error:
            condition, status = conditions.condition_of(error)
            return _failure(status, condition, conditions.description_of(error))
        except AmqpError as error:
            return _failure(400, conditions.ARGUMENT, error.description)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            return _failure(400, conditions.ARGUMENT, f"the request cannot be read: {error!r}")

    def _renew_locks(self, body: Body) -> Response:
        source = self._host.broker.source(self._entity)
        until = [source.renew(_token(one)) for one in body["lock-tokens"]]
        expirations = Array(Kind.TIMESTAMP, [Timestamp(one) for one in until])
        return _success({"expirations": expirations})

    def _renew_session(self, body: Body) -> Response:
        return _success({"expiration": Timestamp(self._session(body).renew())})

    def _peek(self, body: Body) -> Response:
        source = self._host.broker.source(self._entity)
        limit = min(int(body["message-count"]), _LARGEST_PEEK)
        found = source.peek(int(body["from-sequence-number"]), limit, body.get("session-id"))
        messages: list[bytes] = []
        for one in found:  # clients peek again from where an answer ends
            messages.append(encoded(one._replace(locked_until=None)))
            if sum(map(len, messages)) >= _PEEKED_BYTES:
                break
        return _messages([{"message": each} for each in messages])

    def _receive_deferred(self, body: Body) -> Response:
        source = self._host.broker.source(self._entity)
        keep = body.get("receiver-settle-mode", 1) != _DELETE
        session = self._session(body) if source.requires_session else None
        found = source.take_deferred(list(body["sequence-numbers"]), keep=keep, session=session)
        return _messages([_deferred(one) for one in found])

    def _settle(self, body: Body) -> Response:
        source = self._host.broker.source(self._entity)
        if source.requires_session:
            self._session(body)
        outcome = _outcome(body)
        for token in body["lock-tokens"]:
            source.settle(_token(token), outcome)
        return _success(_EMPTY)

    def _schedule(self, body: Body) -> Response:
        messages = [Message.parse(bytes(one["message"])) for one in body["messages"]]
        numbers = self._host.broker.schedule(self._entity, messages)
        return _success({"sequence-numbers": Array(Kind.LONG, numbers)})

    def _cancel_scheduled(self, body: Body) -> Response:
        self._host.broker.cancel_scheduled(self._entity, list(body["sequence-numbers"]))
        return _success(_EMPTY)

    def _get_state(self, body: Body) -> Response:
        return _success({"session-state": self._session(body).get_state()})

    def _set_state(self, body: Body) -> Response:
        state = body.get("session-state")
        self._session(body).set_state(None if state is None else bytes(state))
        return _success(_EMPTY)

    def _sessions(self, body: Body) -> Response:
        source = self._host.broker.source(self._entity)
        after, skip, top = body["last-updated-time"], int(body["skip"]), int(body["top"])
        found = source.sessions(int(after), skip, top)
        if not found:
            return _nothing()
        return _success({"sessions-ids": found, "skip": Int(skip + len(found))})

    def _add_rule(self, body: Body) -> Response:
        add_rule(self._host.broker, self._entity, body)
        return _success(_EMPTY)

    def _remove_rule(self, body: Body) -> Response:
        remove_rule(self._host.broker, self._entity, body)
        return _success(_EMPTY)

    def _rules(self, body: Body) -> Response:
        skip, top = int(body["skip"]), int(body["top"])
        found = listed_rules(self._host.broker, self._entity, skip, top)
        return _success({"rules": found}) if found else _nothing()

    def _session(self, body: Body) -> SessionLock:
        session_id = str(body["session-id"])
        lock = self._connection.session_lock(self._entity, session_id)
        if lock is None:
            raise SessionLockLost(f"session {session_id} is not held over this connection")
        return lock


def _token(found: object) -> bytes:
    if not isinstance(found, UUID):
        raise InvalidArgument("a lock token is a UUID")
    return found.bytes_le


def _outcome(body: Body) -> Outcome:
    properties = {str(k): v for k, v in (body.get("properties-to-modify") or {}).items()}
    status = body["disposition-status"]
    if status == "completed":
        return Complete()
    if status == "abandoned":
        return Abandon(properties)
    if status == "defered":
        return Defer(properties)
    if status == "suspended":
        reason, why = body.get("deadletter-reason"), body.get("deadletter-description")
        return DeadLetter(reason, why, properties)
    raise InvalidArgument(f"a message cannot become {status!r}")


def _deferred(one: Delivery) -> dict[str, object]:
    return {"lock-token": UUID(bytes_le=one.token), "message": encoded(one)}


def _messages(found: Sequence[Mapping[str, object]]) -> Response:
    return _success({"messages": list(found)}) if found else _nothing()


def _success(body: Mapping[str, object]) -> Response:
    return Response({"statusCode": Int(200), "statusDescription": "OK"}, dict(body))


def _nothing() -> Response:
    return Response({"statusCode": Int(204), "statusDescription": "No content"}, {})


def _failure(status: int, condition: str, description: str) -> Response:
    properties = {
        "statusCode": Int(status),
        "statusDescription": description,
        "errorCondition": condition,
    }
    return Response(properties, {})
