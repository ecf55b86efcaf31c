"""A service: `execute` does the work of a step, `payload` says which parameters it takes."""
