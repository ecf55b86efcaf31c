"""Asks an expression about a message."""

from servicebus_emulator.rules import Facts, SqlFilter


def is_match(expression: str, /, **properties: object) -> bool:
    return SqlFilter(expression).matches(Facts(properties))


def verdict(expression: str, facts: Facts) -> bool | None:
    """True, False or unknown, which is neither the expression nor its opposite."""
    if SqlFilter(expression).matches(facts):
        return True
    return False if SqlFilter(f"NOT ({expression})").matches(facts) else None
