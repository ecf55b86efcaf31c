"""The fast yes is never wrong, and the slow no names every problem."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from referencing.exceptions import Unresolvable

from lucius_contract.errors import Problem
from lucius_orchestrator.engine.payload_check import TOO_DEEP, payload_check, quick_check

NAMES = st.sampled_from(["a", "b", "c"])
SMALL = st.integers(0, 3)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 4)
    | st.sampled_from([0.0, 1.0, 1.5, -2.5])
    | st.text("ab1", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)


def typed(kind: str, **optional: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(kind)}, optional=optional)


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return (
        typed("array", items=inner, minItems=SMALL, maxItems=SMALL)
        | typed(
            "object",
            properties=st.dictionaries(NAMES, inner, max_size=3),
            additionalProperties=inner,
            required=st.lists(NAMES, unique=True, max_size=2),
        )
        | st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=2)})
    )


SCHEMAS = st.recursive(
    st.booleans()
    | st.just({})
    | typed(
        "string",
        minLength=SMALL,
        maxLength=SMALL,
        pattern=st.sampled_from(["a", "^b", "1$"]),
        enum=st.lists(st.text("ab", max_size=2), min_size=1, max_size=3, unique=True),
    )
    | typed("integer", minimum=st.integers(-2, 2), maximum=st.integers(0, 4))
    | typed("number", minimum=st.integers(-2, 2), maximum=st.integers(0, 4))
    | typed("boolean")
    | typed("null")
    | st.fixed_dictionaries({"type": st.just(["string", "null"])})
    | st.fixed_dictionaries({"enum": st.lists(VALUES, min_size=1, max_size=3)})
    | st.fixed_dictionaries({"minimum": SMALL, "description": st.just("no type")}),
    composed,
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_what_the_quick_check_accepts_is_valid(schema: Any, value: Any) -> None:
    quick = quick_check(schema)
    if quick is not None and quick(value):
        assert Draft202012Validator(schema).is_valid(value)


@given(SCHEMAS.filter(lambda schema: isinstance(schema, dict)), VALUES)
def test_a_check_finds_problems_exactly_where_the_validator_does(
    schema: dict[str, Any], value: Any
) -> None:
    assert (not payload_check(schema)(value)) == Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"type": "null"},
        {"type": "integer", "multipleOf": 2},
        {"enum": [1, "a"]},
        {"minimum": 1},
        {"type": "object", "patternProperties": {"a": True}},
        {"type": "object", "properties": {"a": {"$ref": "#"}}},
    ],
)
def test_a_schema_beyond_the_common_part_has_no_quick_check(schema: dict[str, Any]) -> None:
    assert quick_check(schema) is None


def test_all_problems_are_named_with_their_pointers() -> None:
    check = payload_check(
        {
            "type": "object",
            "properties": {"a/b": {"type": "integer"}, "c": {"items": {"maxLength": 1}}},
        }
    )
    assert {problem.pointer for problem in check({"a/b": "x", "c": ["y", "long"]})} == {
        "/a~1b",
        "/c/1",
    }


@pytest.mark.parametrize(("value", "is_valid"), [(True, True), (False, True), (1, False)])
def test_a_boolean_is_true_or_false(value: Any, is_valid: bool) -> None:
    accepts = quick_check({"type": "boolean"})
    assert accepts is not None
    assert accepts(value) is is_valid


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the validator's, if it fetches
def test_a_schema_elsewhere_is_never_fetched(tmp_path: Path) -> None:
    elsewhere = tmp_path / "schema.json"
    elsewhere.write_text("true")
    check = payload_check({"$ref": elsewhere.as_uri()})
    with pytest.raises(Unresolvable):
        check({"a": 1})


def test_an_integer_may_be_written_with_a_fraction_of_zero() -> None:
    assert not payload_check({"properties": {"dpi": {"type": "integer"}}})({"dpi": 200.0})


def test_a_payload_too_deep_for_a_recursive_schema_is_a_problem_and_no_crash() -> None:
    payload: dict[str, Any] = {}
    for _ in range(900):
        payload = {"next": payload}
    check = payload_check({"properties": {"next": {"$ref": "#"}}})
    assert check(payload) == (Problem("", TOO_DEEP),)
