"""Dates, amounts and other values are read as they are meant, or not at all."""

import time
from datetime import date, timedelta
from random import Random

import pytest

from sis_service.amounts import amounts
from sis_service.dates import dates
from sis_service.statements import Statement, statements
from sis_service.values import reader_of


def read(schema: dict[str, object], text: str, name: str = "thing") -> list[object]:
    read_values = reader_of(schema, (name,), name)
    assert read_values is not None
    return [mention.value for one in statements([(0, text)]) for mention in read_values(one)]


@pytest.mark.parametrize(
    "text",
    [
        "3 March 2026",
        "03 Mar 2026",
        "3rd of March 2026",
        "the 3. März 2026",
        "March 3, 2026",
        "Mar. 3rd, 2026",
        "3-Mar-2026",
        "2026-03-03",
        "2026/3/3",
        "03.03.2026",
        "3. 3. 2026",
        "03/03/2026",
        "on 3\u00a0March\u00a02026.",
    ],
)
def test_a_date_is_read_in_its_usual_forms(text: str) -> None:
    assert [found.value for found in dates(text)] == ["2026-03-03"]


@pytest.mark.parametrize(
    "text", ["03/04/2026", "31 February 2026", "INV-2026-03-03", "3 March", "3.3.26", "2026-13-40"]
)
def test_what_is_no_date_for_sure_is_none(text: str) -> None:
    assert list(dates(text)) == []


def test_slashes_are_read_where_only_one_order_is_possible() -> None:
    assert [found.value for found in dates("13/04/2026 or 04/13/2026")] == ["2026-04-13"] * 2


@pytest.mark.parametrize("form", ["%d %B %Y", "%B %d, %Y", "%d-%b-%Y", "%Y-%m-%d", "%d.%m.%Y"])
def test_every_day_of_a_leap_year_is_read_back(form: str) -> None:
    days = [date(2028, 1, 1) + timedelta(number) for number in range(366)]
    for day in days:
        (found,) = dates(f"Issued {day.strftime(form)}, as agreed")
        assert found.value == day.isoformat()


AMOUNTS = {
    "EUR 4,711.20": 4711.20,
    "4.711,20 €": 4711.20,
    "4711.20": 4711.20,
    "EUR 4 711,20": 4711.20,
    "CHF 4'711.20": 4711.20,
    "4\u202f711,20 EUR": 4711.20,
    "1,234,567": 1234567,
    "1.234.567": 1234567,
    "EUR 4.711": 4711,
    "4,711 people": 4711,
    "a weight of 4.711 kg": 4.711,
    "0,825": 0.825,
    "-12.50": -12.50,
    "EUR -12": -12,
    "$5.": 5,
    "EUR 100,-": 100,
    "Total:4711.20": 4711.20,
}


@pytest.mark.parametrize(("text", "value"), AMOUNTS.items())
def test_an_amount_is_read_in_its_usual_forms(text: str, value: float) -> None:
    assert [found.value for found in amounts(text)] == [value]


@pytest.mark.parametrize(
    "text",
    [
        "QM-2026-0417",
        "+44 20 7946 0018",
        "IBAN XX68 QUIL 2190 5512 3456 78",
        "on 3 March 2026",
        "at 10:30",
        "1,234.567,89",
        "no. 007",
        "20 %",
    ],
)
def test_digits_that_are_no_amount_are_left_alone(text: str) -> None:
    assert list(amounts(text)) == []


def test_columns_of_a_table_are_numbers_of_their_own() -> None:
    row = amounts("Archival paper, box of 200 sheets 18 134.00 2,412.00")
    assert [found.value for found in row] == [200, 18, 134, 2412]


def test_amounts_of_every_length_are_read_back_from_every_form() -> None:
    numbers = Random(4711)
    for cents in (numbers.randrange(10**length) for length in range(1, 14) for _ in range(20)):
        english = f"{cents / 100:,.2f}"
        german = english.translate(str.maketrans(",.", ".,"))
        for text in (f"EUR {english}", f"{german} EUR", english, german):
            (found,) = amounts(f"to pay: {text} at once")
            assert found.value == pytest.approx(cents / 100)


def test_a_percentage_is_no_amount_unless_a_rate_is_asked_for() -> None:
    line = "VAT 20 %: EUR 785.20"
    assert read({"type": "number"}, line, "vat") == [785.2]
    assert read({"type": "number"}, line, "vat rate") == [20]


def test_an_integer_is_a_whole_number() -> None:
    assert read({"type": "integer"}, "164 hours at 21.50") == [164]


@pytest.mark.parametrize(
    ("text", "value"), [("Approved: no", [False]), ("Quorum yes.", [True]), ("No damage.", [])]
)
def test_a_boolean_is_a_yes_or_no_at_the_end(text: str, value: list[bool]) -> None:
    assert read({"type": "boolean"}, text) == value


def test_a_member_of_an_enum_is_found_whole_and_in_any_spelling() -> None:
    schema: dict[str, object] = {"enum": ["paid", "NOT_PAID", None, 3]}
    assert read(schema, "Status: not paid") == ["NOT_PAID"]
    assert read(schema, "Status: Paid") == ["paid"]
    assert read(schema, "Status: prepaid") == []


@pytest.mark.parametrize(
    "text",
    [
        "Customer: Harbour Light Bakery Ltd.",
        "It goes to our customer Harbour Light Bakery Ltd.",
        "The customer is Harbour Light Bakery Ltd., Quay Street 4.",
        "Goods for Harbour Light Bakery Ltd., the customer, are packed apart.",
    ],
)
def test_a_name_is_read_from_behind_a_label_or_beside_its_word(text: str) -> None:
    assert read({"type": "string"}, text, "customer") == ["Harbour Light Bakery Ltd."]


def test_roles_in_brackets_name_the_parties_before_them() -> None:
    text = "This is made between Greta Holm (the landlord) and Pavel Novak (the tenant)."
    assert read({"type": "string"}, text, "landlord") == ["Greta Holm"]
    assert read({"type": "string"}, text, "tenant") == ["Pavel Novak"]


def test_addresses_of_mail_and_of_the_web_are_read() -> None:
    text = "Write to accounts@quillmere.example, or see https://quillmere.example/help."
    assert read({"type": "string", "format": "email"}, text) == ["accounts@quillmere.example"]
    assert read({"type": "string", "format": "uri"}, text) == ["https://quillmere.example/help"]


@pytest.mark.parametrize(
    "schema", [{"type": "array"}, {"type": "string", "format": "date-time"}, {"type": "null"}]
)
def test_what_cannot_be_read_has_no_reader(schema: dict[str, object]) -> None:
    assert reader_of(schema, ("thing",), "thing") is None


def said(text: str) -> list[Statement]:
    found = list(statements([(100, text)]))
    assert all(one.text == text[one.start - 100 : one.end - 100] for one in found)
    return found


def test_a_line_with_several_labels_is_as_many_statements() -> None:
    found = said("Invoice date: 3 March 2026 Order no: 7 Customer: Harbour Light Bakery Ltd.")
    assert [one.label for one in found] == ["Invoice date", "Order no", "Customer"]


@pytest.mark.parametrize("letter", ["A", "A ", "1 ", "@", "a.", "EUR "])
def test_a_text_without_a_stop_is_cut_and_read_in_no_time(letter: str) -> None:
    text = (letter * 200_000)[:200_000].strip()
    found = said(text)
    assert max(len(one.text) for one in found) <= 1000
    assert "".join(one.text for one in found).replace(" ", "") == text.replace(" ", "")
    for schema in ({"type": "string"}, {"type": "number"}, {"type": "string", "format": "email"}):
        read_values = reader_of(schema, ("thing",), "thing")
        assert read_values is not None
        begun = time.process_time()
        list(read_values(found[0]))
        assert time.process_time() - begun < 1


def test_a_heading_is_told_from_a_line_that_says_something() -> None:
    found = said("Notice period\nIt is three months to the end of a quarter.\nStatus: open\n")
    assert [one.is_heading for one in found] == [True, False, False]
