"""Rules in XML: what is written is read again, and what cannot be used is refused."""

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.administration.atom import INSTANCE, SERVICE_BUS
from servicebus_emulator.administration.exchange import Refusal
from servicebus_emulator.administration.rules import read_default_rule, read_rule, write_rule
from servicebus_emulator.rules import CorrelationFilter, FalseFilter, Rule, SqlFilter, TrueFilter

_LETTERS = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="￾￿")
TEXTS = st.text(_LETTERS, min_size=1)
MAYBE = st.none() | TEXTS
VALUES = st.one_of(
    TEXTS,
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1).filter(lambda number: abs(number) < 10**18),
    st.floats(allow_nan=False, allow_infinity=False),
    st.datetimes(timezones=st.just(UTC)).map(lambda time: time.replace(fold=0)),
    st.integers(0, 10**12).map(lambda number: timedelta(milliseconds=number)),
)
CORRELATIONS = st.builds(
    CorrelationFilter,
    properties=st.dictionaries(TEXTS, VALUES, max_size=4),
    message_id=MAYBE,
    correlation_id=MAYBE,
    to=MAYBE,
    reply_to=MAYBE,
    subject=MAYBE,
    session_id=MAYBE,
    reply_to_session_id=MAYBE,
    content_type=TEXTS,
)
FILTERS = st.one_of(
    CORRELATIONS,
    st.just(TrueFilter()),
    st.just(FalseFilter()),
    st.builds(
        SqlFilter, st.just("a < @b AND c LIKE '%&\"'"), st.fixed_dictionaries({"@b": VALUES})
    ),
)


def element(content: str, name: str = "RuleDescription") -> ElementTree.Element:
    text = f'<{name} xmlns="{SERVICE_BUS}" xmlns:i="{INSTANCE}">{content}</{name}>'
    return ElementTree.fromstring(text)  # noqa: S314


@given(TEXTS, FILTERS)
def test_rules_are_read_as_they_were_written(name: str, wanted: object) -> None:
    rule = Rule(name, wanted)  # type: ignore[arg-type]
    found = read_rule(name, element(write_rule(rule, 0)))
    assert found == rule
    assert repr(found.filter) == repr(rule.filter)  # 1, 1.0 and True are equal


def test_the_first_rule_of_a_subscription_has_its_name() -> None:
    written = write_rule(Rule("ocr", CorrelationFilter({"service": "ocr"})), 0)
    content = f"<DefaultRuleDescription>{written}</DefaultRuleDescription>"
    found = read_default_rule(element(content, "SubscriptionDescription"))
    assert found == Rule("ocr", CorrelationFilter({"service": "ocr"}))


def test_without_a_first_rule_there_is_none() -> None:
    assert read_default_rule(element("", "SubscriptionDescription")) is None


def test_a_rule_without_a_filter_lets_everything_through() -> None:
    assert read_rule("one", element("")).filter == TrueFilter()


def test_a_time_may_be_without_a_zone() -> None:
    found = read_rule("one", element(_correlation("dateTime", "2025-03-01T12:00:00.1234567")))
    assert isinstance(found.filter, CorrelationFilter)
    assert found.filter.properties == {"a": datetime(2025, 3, 1, 12, 0, 0, 123456)}  # noqa: DTZ001


def _correlation(kind: str, text: str) -> str:
    pair = f'<Key>a</Key><Value i:type="x:{kind}">{text}</Value>'
    properties = (
        f"<Properties><KeyValueOfstringanyType>{pair}</KeyValueOfstringanyType></Properties>"
    )
    return f'<Filter i:type="CorrelationFilter">{properties}</Filter>'


@pytest.mark.parametrize(
    "content",
    [
        '<Filter i:type="OtherFilter"/>',
        "<Filter/>",
        '<Filter i:type="SqlFilter"><SqlExpression>a ==== b</SqlExpression></Filter>',
        '<Filter i:type="SqlFilter"/>',
        '<Filter i:type="CorrelationFilter"><Properties><a/></Properties></Filter>',
        _correlation("guid", "x"),
        _correlation("int", "1.5"),
        _correlation("double", "nan"),
        _correlation("boolean", "maybe"),
        _correlation("dateTime", "yesterday"),
        _correlation("duration", "P10675199DT2H48M5.4775807S"),
        '<Action i:type="SqlRuleAction"><SqlExpression>SET a = 1</SqlExpression></Action>',
    ],
)
def test_what_cannot_be_used_is_refused(content: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_rule("one", element(content))
    assert refused.value.status == 400
