"""Queues and topics, which share one space of names."""

from xml.etree.ElementTree import Element

from servicebus_emulator.administration import descriptions
from servicebus_emulator.administration.atom import ATOM, SERVICE_BUS, Entry, parse
from servicebus_emulator.administration.call import Call, gone, many, one, put, updated
from servicebus_emulator.administration.descriptions import View, read_settings, write_description
from servicebus_emulator.administration.exchange import Refusal, Response
from servicebus_emulator.broker import (
    Broker,
    EntityNotFound,
    QueueDescription,
    QueueSettings,
    TopicDescription,
    TopicSettings,
)

_QUEUE, _TOPIC = "QueueDescription", "TopicDescription"


class Entities:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def get(self, call: Call) -> Response:
        return one(self._entry(self._found(*call.names), call))

    def list(self, call: Call) -> Response:
        (kind,) = call.names
        found = self._broker.queues() if kind == "queues" else self._broker.topics()
        return many(kind.capitalize(), [self._entry(entity, call) for entity in found], call)

    def put(self, call: Call) -> Response:
        (name,) = call.names
        kind, description = _described(call.request.body)
        if kind == _QUEUE:
            self._put_queue(name, description, is_update=call.is_update)
        else:
            self._put_topic(name, description, is_update=call.is_update)
        return put(self._entry(self._found(name), call), call)

    def delete(self, call: Call) -> Response:
        match self._found(*call.names):
            case QueueDescription(name=name):
                self._broker.delete_queue(name)
            case TopicDescription(name=name):
                self._broker.delete_topic(name)
        return gone()

    def _put_queue(self, name: str, description: Element, *, is_update: bool) -> None:
        changes = read_settings(descriptions.QUEUE, description)
        if is_update:
            settings = updated(self._broker.queue(name).settings, changes)
            self._broker.update_queue(name, settings)
        else:
            self._broker.create_queue(name, QueueSettings(**changes))

    def _put_topic(self, name: str, description: Element, *, is_update: bool) -> None:
        changes = read_settings(descriptions.TOPIC, description)
        if is_update:
            settings = updated(self._broker.topic(name).settings, changes)
            self._broker.update_topic(name, settings)
        else:
            self._broker.create_topic(name, TopicSettings(**changes))

    def _found(self, name: str) -> QueueDescription | TopicDescription:
        try:
            return self._broker.queue(name)
        except EntityNotFound:
            return self._broker.topic(name)

    def _entry(self, entity: QueueDescription | TopicDescription, call: Call) -> Entry:
        is_queue = isinstance(entity, QueueDescription)
        kind, table = (_QUEUE, descriptions.QUEUE) if is_queue else (_TOPIC, descriptions.TOPIC)
        view = View(entity, call.base, self._broker.max_message_bytes)
        return Entry(
            entity.name,
            f"{call.base}/{entity.name}",
            kind,
            write_description(table, view),
            entity.created_at,
            entity.updated_at,
        )


def _described(body: bytes) -> tuple[str, Element]:
    """What is put is told by its description, as queues and topics have the same addresses."""
    content = parse(body).find(f"{{{ATOM}}}content")
    for kind in (_QUEUE, _TOPIC):
        found = None if content is None else content.find(f"{{{SERVICE_BUS}}}{kind}")
        if found is not None:
            return kind, found
    raise Refusal(400, f"the body has no Atom entry with a {_QUEUE} or a {_TOPIC}")
