"""Correlation filters: equality, and nothing else."""

from datetime import UTC, datetime

import pytest

from servicebus_emulator.rules import CorrelationFilter, Facts

SYSTEM = [
    "message_id",
    "correlation_id",
    "to",
    "reply_to",
    "subject",
    "session_id",
    "reply_to_session_id",
    "content_type",
]


@pytest.mark.parametrize("name", SYSTEM)
def test_a_system_property_must_be_equal(name: str) -> None:
    wanted = CorrelationFilter(**{name: "blue"})  # type: ignore[arg-type]
    assert wanted.matches(Facts(**{name: "blue"}))  # type: ignore[arg-type]
    assert not wanted.matches(Facts(**{name: "Blue"}))  # type: ignore[arg-type]
    assert not wanted.matches(Facts())


def test_every_condition_must_hold() -> None:
    wanted = CorrelationFilter({"color": "red", "size": 3}, subject="order")
    assert wanted.matches(Facts({"color": "red", "size": 3, "more": 1}, subject="order", to="x"))
    assert not wanted.matches(Facts({"color": "red", "size": 3}))
    assert not wanted.matches(Facts({"color": "red"}, subject="order"))


def test_a_filter_without_conditions_matches_everything() -> None:
    assert CorrelationFilter().matches(Facts())


@pytest.mark.parametrize(
    ("wanted", "sent"),
    [(3, "3"), ("3", 3), (True, 1), (1, True), (3, 3.0), ("a", b"a"), ("red", "RED"), (1, 2)],
)
def test_values_of_other_kinds_or_letter_case_are_not_equal(wanted: object, sent: object) -> None:
    assert not CorrelationFilter({"x": wanted}).matches(Facts({"x": sent}))


@pytest.mark.parametrize("value", ["text", "", 3, -1, 2.5, True, False, b"bytes", None])
def test_a_value_is_equal_to_itself(value: object) -> None:
    assert CorrelationFilter({"x": value}).matches(Facts({"x": value}))


def test_names_of_properties_are_taken_in_any_letter_case() -> None:
    assert CorrelationFilter({"Color": "red"}).matches(Facts({"cOLOR": "red"}))


def test_an_exact_name_goes_before_one_in_another_letter_case() -> None:
    assert CorrelationFilter({"color": "red"}).matches(Facts({"COLOR": "blue", "color": "red"}))


def test_a_time_is_compared_with_the_milliseconds_of_the_message() -> None:
    moment = datetime(2024, 1, 2, tzinfo=UTC)
    wanted = CorrelationFilter({"at": moment})
    assert wanted.matches(Facts({"at": int(moment.timestamp() * 1000)}))
