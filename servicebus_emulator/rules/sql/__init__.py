"""SQL filters: tokens, then a syntax tree, then one closure that judges the facts of a message."""

from servicebus_emulator.rules.sql.filter import SqlFilter

__all__ = ["SqlFilter"]
