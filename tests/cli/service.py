"""A platform service, as a test plays it: the client of Azure Service Bus, unchanged."""

import json
from typing import Any

import httpx
from azure.servicebus import ServiceBusClient, ServiceBusMessage

from lucius_contract.messages import Directive, parse_directive
from lucius_contract.routing import directive_topic, lane_of, reply_topic
from tests.bootstrap.planes import reply
from tests.runner.deadlines import PROCESS_DEADLINE


def next_directive(connection: str, tenant: str, service: str) -> Directive:
    """Taken from the subscription of the service, and settled."""
    topic = directive_topic(lane_of(tenant))
    with (
        ServiceBusClient.from_connection_string(connection) as client,
        client.get_subscription_receiver(topic, service) as receiver,
    ):
        (message,) = receiver.receive_messages(max_wait_time=PROCESS_DEADLINE)
        receiver.complete_message(message)
        return parse_directive(b"".join(message.body))


def answer_over_http(directive: Directive, kind: str, **said: Any) -> None:
    assert directive.callback_urls is not None
    bearer = {"Authorization": f"Bearer {directive.callback_token}"}
    url = getattr(directive.callback_urls, kind.lower())
    httpx.post(
        url, json=reply(directive, kind, **said), headers=bearer, timeout=PROCESS_DEADLINE
    ).raise_for_status()


def answer_over_the_bus(connection: str, directive: Directive, kind: str, **said: Any) -> None:
    assert directive.callback_urls is None
    topic = reply_topic(lane_of(directive.tenant_id))
    with (
        ServiceBusClient.from_connection_string(connection) as client,
        client.get_topic_sender(topic) as sender,
    ):
        sender.send_messages(ServiceBusMessage(json.dumps(reply(directive, kind, **said))))
