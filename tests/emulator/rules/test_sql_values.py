"""What comparisons and arithmetic give."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from servicebus_emulator.rules import Facts, FilterFailed, SqlFilter
from tests.emulator.rules.judging import is_match, verdict

GUID = UUID(int=7)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("n = 5", True),
        ("n <> 5", False),
        ("n != 4", True),
        ("n < 6", True),
        ("n <= 5", True),
        ("n > 5", False),
        ("n >= 5", True),
        ("n = 5.0", True),
        ("f > 2.08", True),
        ("f = 25E-1", True),
        ("f = .5 + 2.", True),
        ("t = 'blue'", True),
        ("t = 'Blue'", False),
        ("t > 'blu'", True),
        ("t < 'c'", True),
        ("b = TRUE", True),
        ("b <> false", True),
        ("q = 'it''s'", True),
        ("'blue' = t", True),
        ("t = T", True),
    ],
)
def test_comparison(expression: str, expected: bool) -> None:
    facts = Facts({"n": 5, "f": 2.5, "t": "blue", "b": True, "q": "it's"})
    assert verdict(expression, facts) is expected


@pytest.mark.parametrize(
    "expression",
    [
        "absent = 1",
        "absent <> 1",
        "absent LIKE '%'",
        "absent IN (1)",
        "absent + 1 = 1",
        "-absent = 1",
        "nothing = 1",
        "nothing = NULL",
        "1 = NULL",
        "n = '5'",
        "n <> '5'",
        "t > 5",
        "b = 1",
        "b < TRUE",
        "t + 1 = 'blue1'",
        "t - t = 0",
        "-t = 1",
        "+t = t",
        "--t = t",
        "-b = 1",
        "n LIKE '5'",
        "t LIKE 5",
        "t LIKE NULL",
        "t LIKE 'b%' ESCAPE NULL",
        "n IN ('5', 4)",
        "t IN ('red', NULL)",
        "t IN ('red', absent)",
        "l = 1",
        "g > g",
        "sys.To = 'x'",
    ],
)
def test_unknown_is_neither_true_nor_false(expression: str) -> None:
    facts = Facts({"n": 5, "t": "blue", "b": True, "nothing": None, "l": [1], "g": GUID})
    assert verdict(expression, facts) is None


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("t IN ('red', 'blue')", True),
        ("t NOT IN ('red', 'blue')", False),
        ("t NOT IN ('red')", True),
        ("t IN ('blue', NULL)", True),
        ("n IN (1, 2 + 3)", True),
        ("n IN (1, 2)", False),
        ("n IN (t, n)", True),
        ("g = g", True),
        ("bytes <> bytes", False),
    ],
)
def test_in_and_kinds_that_are_only_equal(expression: str, expected: bool) -> None:
    facts = Facts({"n": 5, "t": "blue", "g": GUID, "bytes": b"x"})
    assert verdict(expression, facts) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("absent IS NULL", True),
        ("nothing IS NULL", True),
        ("n IS NULL", False),
        ("n IS NOT NULL", True),
        ("EXISTS(n)", True),
        ("EXISTS(nothing)", True),
        ("EXISTS(absent)", False),
        ("NOT EXISTS(absent)", True),
        ("EXISTS(sys.Label)", True),
        ("EXISTS(sys.To)", False),
        ("sys.To IS NULL", True),
        ("sys.Label IS NOT NULL", True),
    ],
)
def test_null_and_existence_are_always_known(expression: str, expected: bool) -> None:
    assert verdict(expression, Facts({"n": 5, "nothing": None}, subject="s")) is expected


@pytest.mark.parametrize(
    "expression",
    [
        "7 / 2 = 3",
        "-7 / 2 = -3",
        "7 % -2 = 1",
        "-7 % 2 = -1",
        "7.0 / 2 = 3.5",
        "-7.5 % 2 = -1.5",
        "2 + 3 * 4 = 14",
        "(2 + 3) * 4 = 20",
        "10 - 3 - 2 = 5",
        "16 / 4 / 2 = 2",
        "- - 3 = + 3",
        "-(1 + 2) = -3",
        "'a' + 'b' = 'ab'",
        "1.0 / 0 > 1E300",
        "-1.0 / 0 < -1E300",
        "0.0 / 0 <> 0.0 / 0",
        "1.0 % 0 <> 1.0 % 0",
        "-2.5 = 0 - 2.5",
    ],
)
def test_arithmetic_is_that_of_c_sharp(expression: str) -> None:
    assert is_match(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "n / 0 = 1",
        "n % (n - n) = 1",
        "9223372036854775807 + n = 1",
        "big * big = 1",
        "-smallest = 1",
    ],
)
def test_what_cannot_be_computed_fails_the_filter(expression: str) -> None:
    facts = Facts({"n": 5, "big": 2**62, "smallest": -(2**63)})
    with pytest.raises(FilterFailed):
        SqlFilter(expression).matches(facts)


def test_an_operand_that_cannot_change_the_outcome_is_not_computed() -> None:
    assert is_match("n = 5 OR n / 0 = 1", n=5)
    assert not is_match("n = 4 AND n / 0 = 1", n=5)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("MessageId", "message_id"),
        ("CorrelationId", "correlation_id"),
        ("To", "to"),
        ("ReplyTo", "reply_to"),
        ("Label", "subject"),
        ("Subject", "subject"),
        ("SessionId", "session_id"),
        ("ReplyToSessionId", "reply_to_session_id"),
        ("ContentType", "content_type"),
        ("PartitionKey", "partition_key"),
    ],
)
def test_system_properties_have_the_names_of_the_service(name: str, field: str) -> None:
    facts = Facts({name: "other"}, **{field: "value"})
    assert SqlFilter(f"sys.{name} = 'value' AND SYS.{name.lower()} = 'value'").matches(facts)
    assert SqlFilter(f"{name} = 'other' AND user.{name} = 'other'").matches(facts)


def test_names_of_properties_are_taken_in_any_letter_case() -> None:
    assert is_match("COLOR = 'red' AND user.Color = 'red' AND EXISTS(cOlOr)", color="red")


def test_a_property_may_be_named_by_a_value() -> None:
    assert is_match(
        "property('my' + 'Color') = 'red' AND P(name) = 'red'", mycolor="red", name="MyColor"
    )
    assert verdict("property(absent) = 1", Facts()) is None


def test_parameters_stand_for_their_values() -> None:
    parameters = {"@color": "red", "@Limit": 5, "@yes": True, "@part": 0.5, "@none": None}
    expression = (
        "color = @COLOR AND n < @limit AND flag = @yes AND f = @part AND color LIKE @color"
        " AND (n = @none OR n = 3)"
    )
    facts = Facts({"color": "red", "n": 3, "flag": True, "f": 0.5})
    assert SqlFilter(expression, parameters).matches(facts)


def test_times_are_compared_in_milliseconds() -> None:
    start = datetime(2024, 1, 2, tzinfo=UTC)
    facts = Facts({"from": 1_704_153_600_000, "to": 1_704_153_660_000})
    parameters: dict[str, object] = {
        "@start": start,
        "@naive": start.replace(tzinfo=None),
        "@minute": timedelta(minutes=1),
    }
    expression = "[from] = @start AND [from] = @naive AND [to] - [from] <= @minute"
    assert SqlFilter(expression, parameters).matches(facts)
