"""Taking directives from the bus with controlled concurrency, fair between lanes."""

from lucius_sdk.servicebus_consumer.consumer import ServiceBusConsumer

__all__ = ["ServiceBusConsumer"]
