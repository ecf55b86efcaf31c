"""The tree of an expression. Chains of one operator are one node, so that depth is nesting only."""

from typing import NamedTuple, TypeAlias


class Constant(NamedTuple):
    value: object


class Property(NamedTuple):
    """An application property."""

    name: str


class SystemProperty(NamedTuple):
    """A field of `Facts`."""

    field: str


class NamedProperty(NamedTuple):
    """property(...): an application property whose name is computed."""

    name: "Value"


class Signed(NamedTuple):
    """With + or - before it, or with several of them."""

    value: "Value"
    is_negative: bool


class Chain(NamedTuple):
    """first + a - b, or first * a / b: from left to right."""

    first: "Value"
    steps: tuple[tuple[str, "Value"], ...]


class Comparison(NamedTuple):
    operator: str
    left: "Value"
    right: "Value"


class In(NamedTuple):
    value: "Value"
    options: tuple["Value", ...]


class Like(NamedTuple):
    value: "Value"
    pattern: "Value"
    escape: "Value | None"


class IsNull(NamedTuple):
    property: "Property | SystemProperty"


class Exists(NamedTuple):
    property: "Property | SystemProperty"


class Not(NamedTuple):
    predicate: "Predicate"


class And(NamedTuple):
    predicates: tuple["Predicate", ...]


class Or(NamedTuple):
    predicates: tuple["Predicate", ...]


Value: TypeAlias = Constant | Property | SystemProperty | NamedProperty | Signed | Chain
Predicate: TypeAlias = Comparison | In | Like | IsNull | Exists | Not | And | Or
Node: TypeAlias = Value | Predicate
