"""The bus that the orchestrator and the services share: the port, and its adapters.

The memory bus serves tests and a service beside an orchestrator in one process; the other speaks to
Azure Service Bus, or to its emulator, with the client of Azure.
"""
