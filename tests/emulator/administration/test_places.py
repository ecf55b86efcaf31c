"""What paths name."""

import pytest

from servicebus_emulator.administration import Request
from servicebus_emulator.administration.exchange import Refusal
from servicebus_emulator.administration.places import Kind, Place, locate


def place(path: str) -> Place:
    return locate(Request("GET", path).segments)


@pytest.mark.parametrize(
    ("path", "kind", "names"),
    [
        ("/lane", Kind.ENTITY, ("lane",)),
        ("/a/b/c", Kind.ENTITY, ("a/b/c",)),
        ("/a%2Fb", Kind.ENTITY, ("a/b",)),
        ("/subscriptions", Kind.ENTITY, ("subscriptions",)),
        ("/lane/Subscriptions", Kind.SUBSCRIPTIONS, ("lane",)),
        ("/a%2Fb/subscriptions/ocr", Kind.SUBSCRIPTION, ("a/b", "ocr")),
        ("/a%2Fsubscriptions%2Focr", Kind.SUBSCRIPTION, ("a", "ocr")),
        ("/a/b/SUBSCRIPTIONS/ocr/", Kind.SUBSCRIPTION, ("a/b", "ocr")),
        ("/lane/subscriptions/ocr/Rules", Kind.RULES, ("lane", "ocr")),
        ("/lane/subscriptions/ocr/rules/%24Default", Kind.RULE, ("lane", "ocr", "$Default")),
        ("/$Resources/queues", Kind.ENTITIES, ("queues",)),
        ("/%24resources/Topics", Kind.ENTITIES, ("topics",)),
        ("/$namespaceinfo", Kind.NAMESPACE, ()),
        ("/$emulator/faults", Kind.FAULTS, ()),
        ("/$emulator/health", Kind.HEALTH, ()),
    ],
)
def test_a_path_names_one_thing(path: str, kind: Kind, names: tuple[str, ...]) -> None:
    assert place(path) == Place(kind, names)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//",
        "/a//b",
        "/$Resources",
        "/$Resources/relays",
        "/$emulator",
        "/lane/subscriptions/ocr/rules/one/two",
        "/lane/subscriptions/ocr/other",
    ],
)
def test_nothing_is_elsewhere(path: str) -> None:
    with pytest.raises(Refusal) as refused:
        place(path)
    assert refused.value.status == 404
