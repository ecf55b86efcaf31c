"""The control plane: it accepts jobs, sends directives, judges replies, retries and recovers."""
