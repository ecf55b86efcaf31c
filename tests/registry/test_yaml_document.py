"""YAML as it is read here: JSON values, lines, and nothing that could surprise."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_orchestrator.adapters.registry import RegistryError
from lucius_orchestrator.adapters.registry.document import Document
from lucius_orchestrator.adapters.registry.yaml_document import read_yaml

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**15) + 1, 10**15 - 1)
    | st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "Z", "S"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc<", max_size=3), inner),
    max_leaves=20,
)


def read(text: str) -> Document:
    return read_yaml("x.yaml", text.encode())


def said(document: Document) -> list[str]:
    return [str(problem) for problem in document.problems]


def refused(raw: bytes) -> str:
    with pytest.raises(RegistryError) as refusal:
        read_yaml("x.yaml", raw)
    return str(refusal.value)


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("12", 12),
        ("-3", -3),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1:30", "1:30"),
        ("2026-01-27", "2026-01-27"),
        (".inf", ".inf"),
        ("0x1F", "0x1F"),
        ("9" * 5000, "9" * 5000),
        ('"12"', "12"),
        ("!!str 12", "12"),
        ("=", "="),
    ],
)
def test_scalars_are_read_as_json_would(scalar: str, value: Any) -> None:
    document = read(f"key: {scalar}")
    assert document.value == {"key": value}
    assert type(document.value["key"]) is type(value)
    assert not document.problems


@given(JSON)
def test_json_is_yaml_with_the_same_meaning(value: Any) -> None:
    document = read(json.dumps({"value": value}, ensure_ascii=False))
    assert document.value == {"value": value}
    assert not document.problems


@given(st.binary(max_size=60) | st.text("[]{}:,&*!<>-?|'\"#% \nab1", max_size=60).map(str.encode))
def test_whatever_stands_in_a_file_is_read_or_refused(raw: bytes) -> None:
    try:
        document = read_yaml("x.yaml", raw)
        assert document.problems or json.dumps(document.value, ensure_ascii=False).encode()
    except RegistryError as error:
        assert error.problems  # noqa: PT017 - both ways are right


def test_every_member_knows_its_line() -> None:
    document = read("# first\na:\n  - b: 1\n\n  - c: 2\nd: 3\n")
    lines = {place: document.line_of(place) for place in [("a",), ("a", 1, "c"), ("d",)]}
    assert lines == {("a",): 2, ("a", 1, "c"): 5, ("d",): 6}
    assert document.line_of(("a", 0, "not there")) == 3
    assert read("").line_of(("nothing",)) == 1


def test_anchors_and_merges_work() -> None:
    document = read(
        "x: &slow {lease: 1h, timeout: 3h}\n"
        "y: &patient {lease: 2h, heartbeat: 1m}\n"
        "a: *slow\n"
        "b: {<<: *slow, lease: 30m}\n"
        "c: {<<: [*slow, *patient]}\n"
        "d: {<<: {<<: *slow}}\n"
    )
    assert not document.problems
    assert document.value["a"] == {"lease": "1h", "timeout": "3h"}
    assert document.value["b"] == {"lease": "30m", "timeout": "3h"}
    assert document.value["c"] == {"lease": "1h", "timeout": "3h", "heartbeat": "1m"}
    assert document.value["d"] == document.value["a"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "x.yaml:4: b.c: stands here a second time, after line 3"),
        ("a: 1\n2: x\n", "x.yaml:2: a key must be text; put it in quotes"),
        ("a:\n  true: x\n", "x.yaml:2: a: a key must be text; put it in quotes"),
        ("? [a, b]\n: x\n", "x.yaml:1: a key must be text; put it in quotes"),
        ("a: !!python/name:os.system\n", "x.yaml:1: a: the tag !!python/name:os.system cannot"),
        ("a: !secret x\n", "x.yaml:1: a: the tag !secret cannot be used here"),
        ("a: !!int twelve\n", "x.yaml:1: a: the tag !!int cannot be used here"),
        ("a: !!set {x, y}\n", "x.yaml:1: a: the tag !!set cannot be used here"),
        ("a: !!omap [x]\n", "x.yaml:1: a: the tag !!omap cannot be used here"),
        ("a: 1\nb: &b [1, *b]\n", "x.yaml:2: b[1]: refers to itself"),
        ('a: "\\ud800"\n', "x.yaml:1: a: holds half of a character"),
        ('"\\udc00": 1\n', "x.yaml:1: a key must be text"),
        ("a: {<<: 5}\n", "x.yaml:1: a: << must name another mapping"),
        ("a: &a {<<: *a}\n", "x.yaml:1: a: << must name another mapping"),
    ],
)
def test_what_is_ambiguous_or_unsafe_is_refused_at_its_line(text: str, problem: str) -> None:
    (only,) = said(read(text))
    assert only.startswith(problem)


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"a: 1\nb: [1,\n", "x.yaml:3: is not YAML: "),
        (b"a: 1\n b: 2\n", "x.yaml:2: is not YAML: mapping values are not allowed here"),
        (b"a: *nobody\n", "x.yaml:1: is not YAML: found undefined alias"),
        (b"a: 1\n---\nb: 2\n", "x.yaml:2: is not YAML: but found another document"),
        (b"a: 1\nb: \xff\n", "x.yaml:2: is not UTF-8"),
        (b"a: 1\n\nb: \x00\n", "x.yaml:3: holds a character that YAML does not allow"),
        (b"[" * 5000, "x.yaml:1: is nested too deeply"),
    ],
)
def test_what_is_not_yaml_is_refused_at_its_line(raw: bytes, problem: str) -> None:
    assert refused(raw).startswith(problem)


def test_a_byte_order_mark_does_no_harm() -> None:
    assert read_yaml("x.yaml", b"\xef\xbb\xbfa: 1\n").value == {"a": 1}
