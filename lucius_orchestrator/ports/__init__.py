"""What the engine needs from the world: a ledger, a bus, a registry of protocols."""
