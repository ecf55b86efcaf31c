"""Processes of the Temporal engine that are killed: one role each, as in a deployment."""
