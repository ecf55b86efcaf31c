"""A service that runs: from the delivery of a directive to its settlement, from start to end."""
