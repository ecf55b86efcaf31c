"""What an operator sees of a running control plane: logs, metrics and traces."""
