"""From the ledger to the bus: directives that were committed are published."""
