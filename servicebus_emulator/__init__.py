"""An emulator of Azure Service Bus for the unmodified clients, on one loopback port.

`servicebus_emulator.server.Emulator` serves; `.broker` is the pure part that it serves.
"""
