"""How values are compared and counted: as C# does it, because the service says so.

Unknown, which is None here, is what comes of unknown operands and of kinds that do not fit.
"""

import math
import operator
from collections.abc import Callable
from typing import Any

from servicebus_emulator.rules.errors import FilterFailed
from servicebus_emulator.rules.values import kind_of

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FAMILIES = {"integer": "number", "float": "number"}
_ORDERED = ("number", "text")
_LIMIT = 2**63


def compare(symbol: str, left: object, right: object) -> bool | None:
    family = _common_family(left, right)
    if family is None or (family not in _ORDERED and symbol not in ("=", "<>")):
        return None
    return OPERATORS[symbol](left, right)


def combine(symbol: str, left: object, right: object) -> object:
    """`FilterFailed` where whole numbers are divided by zero or leave 64 bits."""
    family = _common_family(left, right)
    if family == "text" and symbol == "+":
        return left + right  # type: ignore[operator]
    if family != "number":
        return None
    if isinstance(left, int) and isinstance(right, int):
        return _whole(symbol, left, right)
    return _approximate(symbol, float(left), float(right))  # type: ignore[arg-type]


def _common_family(left: object, right: object) -> str | None:
    kind, other = kind_of(left), kind_of(right)
    if kind is None or other is None:
        return None
    family = _FAMILIES.get(kind, kind)
    return family if family == _FAMILIES.get(other, other) else None


def _whole(symbol: str, left: int, right: int) -> int:
    if symbol in "/%" and right == 0:
        raise FilterFailed(f"{left} {symbol} 0 cannot be computed")
    result = _WHOLE[symbol](left, right)
    if not -_LIMIT <= result < _LIMIT:
        raise FilterFailed(f"{left} {symbol} {right} does not fit into 64 bits")
    return result


def _quotient(left: int, right: int) -> int:
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


_WHOLE: dict[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _quotient,
    "%": lambda left, right: left - right * _quotient(left, right),
}


def _approximate(symbol: str, left: float, right: float) -> float:
    match symbol:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/" if right == 0:
            sign = math.copysign(1, left) * math.copysign(1, right)
            return math.nan if left == 0 or math.isnan(left) else math.copysign(math.inf, sign)
        case "/":
            return left / right
    return math.fmod(left, right) if right != 0 and math.isfinite(left) else math.nan
