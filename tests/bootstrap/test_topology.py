"""What is told about the topology: services without subscription by name, differences, remedies."""

from lucius_bus.topology import Drift
from lucius_orchestrator.adapters.registry import YamlRegistry
from lucius_orchestrator.bootstrap.topology import (
    created_lines,
    drift_lines,
    drift_text,
    missing_text,
    topology_of,
)


def test_every_service_of_the_protocols_gets_its_directives_on_every_lane() -> None:
    topology = topology_of(YamlRegistry(None).load())
    named = {tuple(one.name for one in wanted) for wanted in topology.topics.values()}
    assert named == {("embedding", "ocr", "sis"), ("lucius-invoker",)}
    assert len(topology.topics) == 32


def test_missing_topics_and_services_without_subscription_are_named() -> None:
    missing = [
        "global-bus-p1",
        "global-bus-p1/ocr",
        "global-bus-p2/sis",
        "replies-p1/lucius-invoker",
    ]
    assert missing_text(missing) == (
        "no topic global-bus-p1;"
        " service ocr has no subscription on global-bus-p1;"
        " service sis has no subscription on global-bus-p2;"
        " replies have no subscription on replies-p1:"
        " run `lucius topology apply`"
    )


def test_many_topics_are_counted() -> None:
    created = [f"p{lane}" for lane in range(16)] + [f"p{lane}/ocr" for lane in range(16)]
    assert created_lines(created) == [
        "topics: 16 topics, the first of them p0",
        "subscription ocr on 16 topics, the first of them p0",
    ]


def test_differences_say_what_is_and_what_is_wanted() -> None:
    drift = [Drift(f"p{lane}/ocr", "sessions", "False", "True") for lane in range(5)]
    assert drift_lines(drift)[0] == "p0/ocr: sessions is True, wanted False"
    assert drift_text(drift).endswith("; p2/ocr: sessions is True, wanted False; and 2 more")
    assert "more" not in drift_text(drift[:3])
