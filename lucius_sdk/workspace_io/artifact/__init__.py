"""Artifacts of the control plane: inputs by their version, and outcomes as the next one."""
