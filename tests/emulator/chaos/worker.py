"""A client process that may be killed at any moment: it sends a share of the messages, or receives
and completes them. What it says on stdout has happened.

    python worker.py send CONNECTION QUEUE FIRST LAST
    python worker.py receive CONNECTION QUEUE
"""

import logging
import os
import sys

from azure.servicebus import ServiceBusClient, ServiceBusMessage, ServiceBusReceiver
from azure.servicebus.exceptions import ServiceBusError

_AT_ONCE = 100


def send(connection: str, queue: str, first: int, last: int) -> None:
    """Until all are accepted: the queue knows a message by its id, and keeps the first of each."""
    waiting = [range(n, min(n + _AT_ONCE, last)) for n in range(first, last, _AT_ONCE)]
    waiting.reverse()
    while waiting:
        try:
            with _client(connection) as client, client.get_queue_sender(queue) as sender:
                while waiting:
                    numbers = waiting[-1]
                    messages = [ServiceBusMessage(b"%d" % n, message_id=str(n)) for n in numbers]
                    sender.send_messages(messages)
                    say("sent", waiting.pop().start)
        except ServiceBusError:
            continue


def receive(connection: str, queue: str) -> None:
    """Until it is killed."""
    while True:
        try:
            with _client(connection) as client, client.get_queue_receiver(queue) as receiver:
                while True:
                    _receive_some(receiver)
        except ServiceBusError:
            continue


def _receive_some(receiver: ServiceBusReceiver) -> None:
    for message in receiver.receive_messages(_AT_ONCE, max_wait_time=5):
        receiver.complete_message(message)
        say("done", message.sequence_number)


def _client(connection: str) -> ServiceBusClient:
    return ServiceBusClient.from_connection_string(connection, retry_total=0)


def say(what: str, number: int | None) -> None:
    """One write, so that a kill leaves a whole line or none."""
    os.write(1, b"%s %d\n" % (what.encode(), number or 0))


if __name__ == "__main__":
    logging.disable()
    _, task, *arguments = sys.argv
    if task == "send":
        send(arguments[0], arguments[1], int(arguments[2]), int(arguments[3]))
    else:
        receive(arguments[0], arguments[1])
