"""What a journal keeps comes back as it was."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servicebus_emulator.broker.records import Record, SessionStateSet
from servicebus_emulator.journal.encoding import Encoded, Encoder, decode
from tests.emulator.journal.samples import RECORDS, comparable


def round_trip(*records: Record) -> list[Record]:
    return list(decode(Encoder().encode(records)))


def test_there_is_a_sample_of_every_kind_of_record() -> None:
    assert {type(record) for record in RECORDS} == set(get_args(Record))


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_comes_back(record: Record) -> None:
    (restored,) = round_trip(record)
    assert comparable(restored) == comparable(record)


def test_a_group_comes_back_in_its_order() -> None:
    restored = round_trip(*RECORDS, *reversed(RECORDS))
    expected = [*RECORDS, *reversed(RECORDS)]
    assert [comparable(one) for one in restored] == [comparable(one) for one in expected]


def test_an_encoder_keeps_nothing_of_the_group_before() -> None:
    encoder = Encoder()
    assert encoder.encode(RECORDS) == encoder.encode(RECORDS)


@given(st.lists(st.tuples(st.text(), st.text(), st.binary() | st.none(), st.integers())))
def test_any_text_and_any_bytes_come_back(
    values: list[tuple[str, str, bytes | None, int]],
) -> None:
    records = [SessionStateSet(*each) for each in values]
    assert round_trip(*records) == records


@pytest.mark.parametrize(
    "text",
    ['[["Unheard",1]]', '[["Removed"]]', '[["Removed",1,2,3]]', '[{"odd":1}]', "[1", "{}", "[[]]"],
)
def test_what_is_no_record_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the reason is for people
        list(decode(Encoded(text.encode(), b"")))


def test_a_message_that_is_none_is_a_value_error() -> None:
    text = b'[["Changed","q",1,0,0,{"message":3}]]'
    with pytest.raises(ValueError, match="does not know"):
        list(decode(Encoded(text, b"\x00\x53\x75")))


def test_what_a_journal_cannot_keep_is_an_error_at_once() -> None:
    with pytest.raises(TypeError, match="cannot keep a set"):
        Encoder().encode([SessionStateSet("q", "s", {1}, 1)])  # type: ignore[arg-type]
