"""A topology in other words."""

import json
from datetime import timedelta

import isodate  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_bus.filters import PropertyFilter
from lucius_bus.topology import SubscriptionSettings, Topology, lane_topology
from lucius_orchestrator.adapters.bus.rendering import (
    Row,
    as_bicep,
    as_config_json,
    as_rows,
    iso_duration,
)
from servicebus_emulator.broker import Broker
from servicebus_emulator.broker import SubscriptionSettings as Emulated
from servicebus_emulator.config import apply, parse_config
from servicebus_emulator.rules import DEFAULT_RULE, CorrelationFilter, Rule

LANES = lane_topology(["ocr", "sis"])
PARTICULAR = SubscriptionSettings(
    "mine",
    PropertyFilter({"kind": "it's ${b}\\", "other-kind": "b"}, "m1", "s1"),
    lock_duration=timedelta(seconds=5),
    max_delivery_count=3,
    requires_session=True,
    default_ttl=timedelta(days=1, hours=2),
    dead_letter_on_expiry=True,
)
ONE = Topology({"lane": (PARTICULAR,), "empty": ()})


def test_rows_are_one_for_each_subscription() -> None:
    rows = as_rows(LANES)
    assert len(rows) == 16 * 2 + 16
    assert rows[0] == Row("global-bus-p0", "ocr", "service = 'ocr'", "PT1M", "10", "no", "", "drop")
    assert rows[-1][:3] == ("global-bus-replies-p15", "lucius-invoker", "everything")


def test_rows_show_every_setting() -> None:
    row, empty = as_rows(ONE)
    assert row.filter == (
        "message id = 'm1' and session id = 's1' and kind = \"it's ${b}\\\\\" and other-kind = 'b'"
    )
    assert row[3:] == ("PT5S", "3", "yes", "P1DT2H", "dead letter")
    assert empty == ("empty", "", "", "", "", "", "", "")


def configured(topology: Topology) -> Broker:
    broker = Broker(lambda: 0, lambda: b"0" * 16)
    apply(broker, parse_config(json.loads(as_config_json(topology))))
    return broker


def test_the_emulator_reads_the_configuration() -> None:
    broker = configured(LANES)
    assert len(broker.topics()) == 32
    ocr = broker.subscription("global-bus-p3", "ocr")
    assert ocr.rules == (Rule("ocr", CorrelationFilter({"service": "ocr"})),)
    assert ocr.settings == Emulated()
    assert broker.subscription("global-bus-replies-p3", "lucius-invoker").rules == (DEFAULT_RULE,)


def test_the_configuration_has_every_setting() -> None:
    found = configured(ONE).subscription("lane", "mine")
    assert found.settings == Emulated(
        lock_duration=5000,
        max_delivery_count=3,
        requires_session=True,
        default_ttl=26 * 3_600_000,
        dead_letter_on_expiry=True,
    )
    properties = {"kind": "it's ${b}\\", "other-kind": "b"}
    expected = CorrelationFilter(properties, message_id="m1", session_id="s1")
    assert [rule.filter for rule in found.rules] == [expected]


def test_bicep_writes_lanes_once() -> None:
    bicep = as_bicep(LANES)
    assert bicep.count("'global-bus-p15'") == bicep.count("'global-bus-replies-p15'") == 1
    assert bicep.count("name: 'ocr'") == bicep.count("service: 'ocr'") == 1
    assert bicep.count("name: 'lucius-invoker'") == 1
    assert bicep.count("\nresource ") == 4


@pytest.mark.parametrize("topology", [LANES, ONE, Topology({})])
def test_brackets_in_bicep_close_in_order(topology: Topology) -> None:
    opened: list[str] = []
    for character in _without_texts(as_bicep(topology)):
        if character in "([{":
            opened.append(character)
        elif character in ")]}":
            assert opened.pop() + character in ("()", "[]", "{}")
    assert opened == []


def _without_texts(bicep: str) -> str:
    """What stands outside of quotes and comments."""
    found, is_text = [], False
    letters = iter("\n".join(line.partition("//")[0] for line in bicep.splitlines()))
    for letter in letters:
        if is_text and letter == "\\":
            next(letters)
        elif letter == "'":
            is_text = not is_text
        elif not is_text:
            found.append(letter)
    assert not is_text
    return "".join(found)


def test_bicep_has_every_setting_and_escapes_texts() -> None:
    bicep = as_bicep(ONE)
    for expected in (
        "lockDuration: 'PT5S'",
        "maxDeliveryCount: 3",
        "requiresSession: true",
        "defaultMessageTimeToLive: 'P1DT2H'",
        "deadLetteringOnMessageExpiration: true",
        "messageId: 'm1'",
        "sessionId: 's1'",
        r"kind: 'it\'s \${b}\\'",
        "'other-kind': 'b'",
    ):
        assert expected in bicep


def test_bicep_cannot_hold_numbers_in_filters() -> None:
    numbered = SubscriptionSettings("mine", PropertyFilter({"size": 3}))
    with pytest.raises(ValueError, match="size"):
        as_bicep(Topology({"lane": (numbered,)}))


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=9999)))
def test_durations_are_read_as_they_were_written(span: timedelta) -> None:
    assert isodate.parse_duration(iso_duration(span)) == span
