"""YAML with the line of every member, so that a problem can say where it is.

Scalars are read as YAML 1.2 and JSON do: `no` and `on` are text, `1:30` and `2026-01-27` too.
Everything that comes out is JSON.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import yaml

from lucius_orchestrator.adapters.registry.document import Document
from lucius_orchestrator.adapters.registry.problems import (
    FileProblem,
    Place,
    RegistryError,
    member_name,
)


def read_yaml(file: str, raw: bytes) -> Document:
    """Parse one document; RegistryError when there is no telling what it says."""
    lines: dict[Place, int] = {}
    document = Document(file, lines=lines)
    try:
        root = _Loader(raw.decode("utf-8-sig")).get_single_node()
        if root is not None:
            lines[()] = _line(root)
            document.value = _Reading(document, lines).value(root, ())
    except UnicodeDecodeError as error:
        raise _unreadable(file, raw.count(b"\n", 0, error.start) + 1, "is not UTF-8") from error
    except yaml.reader.ReaderError as error:
        line = raw.decode("utf-8-sig").count("\n", 0, error.position) + 1
        raise _unreadable(file, line, "holds a character that YAML does not allow") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise _unreadable(file, line, f"is not YAML: {error.problem or error.context}") from error
    except RecursionError as error:
        raise _unreadable(file, 1, "is nested too deeply") from error
    return document


def _unreadable(file: str, line: int, reason: str) -> RegistryError:
    return RegistryError([FileProblem(file, line, "", reason)])


class _Scalar(NamedTuple):
    pattern: re.Pattern[str]
    first: str
    read: Callable[[str], Any]


_TAG = "tag:yaml.org,2002:"
_TEXT, _MERGE = f"{_TAG}str", f"{_TAG}merge"
_SURROGATE = re.compile("[\ud800-\udfff]")
_SCALARS = {
    f"{_TAG}null": _Scalar(re.compile(r"~|null|Null|NULL|"), "~nN", lambda _text: None),
    f"{_TAG}bool": _Scalar(
        re.compile(r"true|True|TRUE|false|False|FALSE"), "tTfF", lambda text: text[0] in "tT"
    ),
    # Longer numbers have no exact form in JSON; they stay text and are refused as such.
    f"{_TAG}int": _Scalar(re.compile(r"[-+]?[0-9]{1,15}"), "-+0123456789", int),
    f"{_TAG}float": _Scalar(
        re.compile(r"[-+]?(\.[0-9]+|[0-9]{1,15}(\.[0-9]*)?)([eE][-+]?[0-9]{1,2})?"),
        "-+.0123456789",
        float,
    ),
}


class _Loader(yaml.SafeLoader):
    """Composes nodes; what a plain scalar is, it judges by the table above."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _kind in _SCALARS.items():
    _whole = re.compile(rf"(?:{_kind.pattern.pattern})\Z")
    _Loader.add_implicit_resolver(_tag, _whole, ["", *_kind.first])
_Loader.add_implicit_resolver(_MERGE, re.compile(r"<<\Z"), ["<"])

_Pair = tuple[yaml.Node, yaml.Node]


class _Reading:
    """From nodes to values, with the line of each."""

    def __init__(self, document: Document, lines: dict[Place, int]) -> None:
        self._document = document
        self._lines = lines
        self._around: list[yaml.Node] = []

    def value(self, node: yaml.Node, place: Place) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, place)
        if node in self._around:
            self._document.refuse(place, "refers to itself")
            return None
        self._around.append(node)
        try:
            if isinstance(node, yaml.MappingNode):
                return self._mapping(node, place)
            return self._sequence(node, place)
        finally:
            self._around.pop()

    def _scalar(self, node: yaml.ScalarNode, place: Place) -> Any:
        if node.tag == _TEXT:
            if _SURROGATE.search(node.value):
                self._document.refuse(place, "holds half of a character; write it without \\u")
            return node.value
        scalar = _SCALARS.get(node.tag)
        if scalar is None or not scalar.pattern.fullmatch(node.value):
            self._refuse_tag(node, place)
            return None
        return scalar.read(node.value)

    def _sequence(self, node: yaml.Node, place: Place) -> list[Any]:
        if node.tag != f"{_TAG}seq":
            self._refuse_tag(node, place)
        items = []
        for index, item in enumerate(node.value):
            self._lines[*place, index] = _line(item)
            items.append(self.value(item, (*place, index)))
        return items

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, Any]:
        if node.tag != f"{_TAG}map":
            self._refuse_tag(node, place)
        members: dict[str, Any] = {}
        for key, value in [*self._own(node, place), *self._merged(node, place)]:
            if key.value not in members:
                self._lines[*place, key.value] = _line(key)
                members[key.value] = self.value(value, (*place, key.value))
        return members

    def _own(self, node: yaml.MappingNode, place: Place) -> Iterator[_Pair]:
        """The members that the mapping itself names, each of them once."""
        first: dict[str, int] = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                continue
            if key.tag != _TEXT or _SURROGATE.search(key.value):
                self._refuse_key(key, place, "a key must be text; put it in quotes")
            elif key.value in first:
                reason = f"stands here a second time, after line {first[key.value]}"
                self._refuse_key(key, (*place, key.value), reason)
            else:
                first[key.value] = _line(key)
                yield key, value

    def _merged(self, node: yaml.MappingNode, place: Place) -> Iterator[_Pair]:
        """What `<<` takes from other mappings; earlier ones win."""
        for key, value in node.value:
            if key.tag != _MERGE:
                continue
            for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(source, yaml.MappingNode) or source in self._around:
                    self._refuse_key(key, place, "<< must name another mapping")
                    continue
                yield from ((key, value) for key, value in source.value if key.tag == _TEXT)
                yield from self._merged(source, place)

    def _refuse_key(self, key: yaml.Node, place: Place, reason: str) -> None:
        problem = FileProblem(self._document.file, _line(key), member_name(place), reason)
        self._document.problems.append(problem)

    def _refuse_tag(self, node: yaml.Node, place: Place) -> None:
        tag = node.tag.replace(_TAG, "!!")
        self._document.refuse(place, f"the tag {tag} cannot be used here")


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1
