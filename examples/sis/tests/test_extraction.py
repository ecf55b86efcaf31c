"""Answers without a language model: right where the document says it, and else not found."""

from typing import Any

import pytest
from lucius_sdk.testing import StepRun, run_step

from sis_service import answer_schema
from sis_service.execute import service

BAKERY = (
    b"Invoice date: 3 March 2026 Customer: Harbour Light Bakery Ltd. We thank you for your order."
    b" The total amount due is EUR 4,711.20. Please pay by 2 April 2026."
)
INVOICE_SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["invoice_date", "customer", "total"],
    "properties": {
        "invoice_date": {"type": "string", "format": "date"},
        "customer": {"type": "string", "description": "Name of the customer"},
        "total": {"type": "number", "description": "Total amount due"},
    },
}
NUMBER = {"type": "number"}
TEXT = {"type": "string"}


def run(prompt: str, text: bytes, schema: dict[str, Any] | None = None) -> StepRun:
    asked: dict[str, Any] = {"name": "asked", "prompt": prompt, "output": "text"}
    if schema is not None:
        asked |= {"output": "json", "schema": schema}
    return run_step(service, {"prompt_set": [asked]}, text)


def ask(prompt: str, text: bytes, schema: dict[str, Any] | None = None) -> dict[str, Any]:
    done = run(prompt, text, schema)
    assert done.status == "SUCCEEDED", done.error
    answer: dict[str, Any] = done.json("result.json")["answers"][0]
    return answer


@pytest.mark.parametrize(
    ("prompt", "said"),
    [
        ("What is the invoice total?", "4,711.20"),
        ("What is the total amount due?", "4,711.20"),
        ("What is the invoice date?", "14 March 2026"),
        ("Who is the customer?", "customer Tarnbrook Observatory"),
        ("What is the notice period?", "three months"),
    ],
)
def test_the_shipped_invoice_answers_in_its_own_words(
    invoice: bytes, prompt: str, said: str
) -> None:
    answer = ask(prompt, invoice)
    assert answer["found"]
    assert said in answer["answer"]
    assert " ".join(answer["source"]["text"].split()) == answer["answer"]


def test_the_shipped_invoice_fills_in_a_form(invoice: bytes) -> None:
    answer = ask("Read the invoice.", invoice, INVOICE_SCHEMA)
    assert answer["found"]
    assert answer["answer"] == {
        "invoice_date": "2026-03-14",
        "customer": "Tarnbrook Observatory",
        "total": 4711.2,
    }


def test_an_invoice_on_one_line_fills_in_a_form() -> None:
    answer = ask("Read the invoice.", BAKERY, INVOICE_SCHEMA)
    assert answer["answer"] == {
        "invoice_date": "2026-03-03",
        "customer": "Harbour Light Bakery Ltd.",
        "total": 4711.2,
    }


def test_a_value_beside_its_own_name_comes_before_a_whole_statement(invoice: bytes) -> None:
    """Which would be `Customer number 20815`."""
    schema = {"properties": {"customer": TEXT, "total": NUMBER}}
    assert ask("Read it.", invoice, schema)["answer"]["customer"] == "Tarnbrook Observatory"


def test_a_question_in_the_document_is_no_answer() -> None:
    text = b"What is the notice period?\nThe notice period is three months, in writing."
    answer = ask("What is the notice period?", text)
    assert answer["answer"] == "The notice period is three months, in writing."


def test_every_member_says_where_it_was_found(invoice: bytes) -> None:
    answer, text = ask("Read it.", invoice, INVOICE_SCHEMA), invoice.decode()
    assert answer["fields"].keys() == {"/invoice_date", "/customer", "/total"}
    for field in answer["fields"].values():
        place = field["source"]
        assert text[place["start"] : place["end"]] == place["text"]
    assert answer["score"] == min(field["score"] for field in answer["fields"].values())


@pytest.mark.parametrize(
    "prompt",
    ["Which medicine was prescribed?", "What is the date of birth?", "Who is the landlord?"],
)
def test_what_the_document_does_not_say_is_not_found(invoice: bytes, prompt: str) -> None:
    answer = ask(prompt, invoice)
    assert (answer["found"], answer["answer"], answer["source"]) == (False, None, None)
    assert "near enough" in answer["reason"]
    assert answer["score"] < 0.35


def test_what_is_required_and_not_there_leaves_the_answer_unfound() -> None:
    schema = INVOICE_SCHEMA | {
        "required": ["total", "birth_date"],
        "properties": {"total": NUMBER, "birth_date": {"type": "string", "format": "date"}},
    }
    answer = ask("Read it.", BAKERY, schema)
    assert (answer["found"], answer["answer"]) == (False, None)
    assert answer["reason"] == "required by the schema, and not found: /birth_date"
    assert answer["fields"]["/total"]["value"] == 4711.2


@pytest.mark.parametrize(
    "absent",
    [
        {"type": ["string", "null"], "format": "date"},
        {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        {"$ref": "#/$defs/day"},
    ],
)
def test_what_is_not_there_is_null_where_the_schema_allows_it(absent: dict[str, Any]) -> None:
    schema = {
        "required": ["total", "birth_date"],
        "properties": {"total": NUMBER, "birth_date": absent},
        "$defs": {"day": {"type": ["string", "null"], "format": "date"}},
    }
    assert ask("Read it.", BAKERY, schema)["answer"] == {"total": 4711.2, "birth_date": None}


def test_what_is_neither_there_nor_required_is_left_out() -> None:
    schema = {"properties": {"total": NUMBER, "doctor": TEXT, "items": {"type": "array"}}}
    assert ask("Read it.", BAKERY, schema)["answer"] == {"total": 4711.2}


def test_a_member_without_a_name_is_left_out() -> None:
    assert ask("Read it.", BAKERY, {"properties": {"": NUMBER, "total": NUMBER}})["answer"] == {
        "total": 4711.2
    }


def test_a_form_of_which_nothing_is_there_is_not_found() -> None:
    schema = {"properties": {"doctor": {"type": ["string", "null"]}}}
    answer = ask("Read it.", BAKERY, schema)
    assert (answer["found"], answer["answer"], answer["fields"]) == (False, None, {})


def test_objects_within_objects_are_filled_in() -> None:
    schema = {
        "properties": {
            "invoice": {"type": "object", "properties": {"date": {"$ref": "#/$defs/day"}}},
            "doctor": {"type": "object", "properties": {"name": TEXT}},
        },
        "$defs": {"day": {"type": "string", "format": "date"}},
    }
    assert ask("Read it.", BAKERY, schema)["answer"] == {"invoice": {"date": "2026-03-03"}}


def test_a_schema_without_members_is_one_value() -> None:
    assert ask("What is the total amount due?", BAKERY, NUMBER)["answer"] == 4711.2
    day = {"type": "string", "format": "date"}
    assert ask("By when shall I pay?", BAKERY, day)["answer"] == "2026-04-02"


def test_json_without_a_schema_holds_the_sentence() -> None:
    prompts = [{"name": "t", "prompt": "What is the total amount due?", "output": "json"}]
    done = run_step(service, {"prompt_set": prompts}, BAKERY)
    answer = done.json("result.json")["answers"][0]["answer"]
    assert answer == {"answer": "The total amount due is EUR 4,711.20."}


def test_of_several_values_that_one_is_taken_which_the_schema_allows() -> None:
    text = b"The order total is 90. The order total with freight is 110."
    assert ask("Order total", text, NUMBER | {"minimum": 100})["answer"] == 110
    schema = {"properties": {"number": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]+$"}}}
    text = b"Customer number: 20815\nOrder number: QM-417\n"
    assert ask("Order number", text, schema)["answer"] == {"number": "QM-417"}


def test_two_dates_in_a_sentence_are_told_apart() -> None:
    text = b"The goods left our house on 24 February 2026 and were received on 26 February 2026."
    day = {"type": "string", "format": "date"}
    schema = {"properties": {"left_house": day, "received": day}}
    assert ask("Read it.", text, schema)["answer"] == {
        "left_house": "2026-02-24",
        "received": "2026-02-26",
    }


def test_a_regular_expression_without_end_does_not_hold_up_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answer_schema, "SECONDS", 0.3)
    schema = {"properties": {"code": {"type": "string", "pattern": "^(a+)+$"}}}
    done = run("Code", b"Code: " + b"a" * 60 + b"!", schema)
    assert (done.status, done.code) == ("FAILED_FINAL", "SIS_SCHEMA_TOO_SLOW")


def test_references_that_double_and_double_do_not_hold_up_the_service(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answer_schema, "SECONDS", 0.3)
    levels: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)
    }
    schema = {
        "properties": {"total": NUMBER},
        "$ref": "#/$defs/d0",
        "$defs": levels | {"d30": {"type": "object"}},
    }
    assert run("Total amount due", BAKERY, schema).code == "SIS_SCHEMA_TOO_SLOW"


def test_a_form_that_contains_itself_is_not_filled_in() -> None:
    node = {"properties": {"left": {"$ref": "#/$defs/n"}, "right": {"$ref": "#/$defs/n"}}}
    answer = ask("Read it.", BAKERY, {"$ref": "#/$defs/n", "$defs": {"n": node}})
    assert not answer["found"]
    assert "more than 200 members" in answer["reason"]
