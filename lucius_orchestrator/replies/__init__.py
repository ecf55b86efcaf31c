"""From the bus to the engine: replies of services."""
