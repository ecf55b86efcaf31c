"""What every log line of a piece of work carries, without being handed through every call."""

from contextvars import ContextVar

correlation: ContextVar[str | None] = ContextVar("lucius_correlation", default=None)
"""The correlation id of the work at hand; None outside of any."""
