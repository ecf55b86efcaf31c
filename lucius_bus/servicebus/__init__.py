"""A bus on Azure Service Bus, or on whatever speaks its protocol.

Only the `lucius-sdk[azure]` extra has what this package needs.
"""

from lucius_azure.identity import default_credential
from lucius_bus.servicebus.bus import ServiceBusBus
from lucius_bus.servicebus.settings import ServiceBusSettings

__all__ = ["ServiceBusBus", "ServiceBusSettings", "default_credential"]
