"""Replies on their way to the orchestrator: over HTTP, or on the reply topic of a lane."""
