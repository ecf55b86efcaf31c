"""How often the extractive answers are right, on documents that were written for it.

`documents/questions.json` has, by document, what an answer must contain one of (nothing: the
document does not say it), and members of a schema with their values.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from lucius_sdk.testing import run_step

from sis_service.execute import service

FOLDER = Path(__file__).parent / "documents"
CASES: dict[str, dict[str, Any]] = json.loads((FOLDER / "questions.json").read_bytes())


@pytest.fixture(scope="module")
def texts(invoice: bytes) -> dict[str, bytes]:
    return {name: path(name).read_bytes() for name in CASES if name != "invoice"} | {
        "invoice": invoice
    }


def path(name: str) -> Path:
    return FOLDER / f"{name}.txt"


def answers(text: bytes, prompts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    done = run_step(service, {"prompt_set": prompts}, text)
    found: list[dict[str, Any]] = done.json("result.json")["answers"]
    return found


def kind_of(answer: object, allowed: list[str]) -> str:
    if answer is None:
        return "missed" if allowed else "rightly not found"
    if not allowed:
        return "invented"
    return "right" if any(one in str(answer) for one in allowed) else "wrong"


def test_questions_are_answered_rightly_or_not_at_all(texts: dict[str, bytes]) -> None:
    counted: Counter[str] = Counter()
    for name, case in CASES.items():
        questions: dict[str, list[str]] = case["questions"]
        prompts = [{"name": q, "prompt": q, "output": "text"} for q in questions]
        for answer in answers(texts[name], prompts):
            counted[kind_of(answer["answer"], questions[answer["name"]])] += 1
    print(dict(counted))
    assert counted["right"] >= 82
    assert counted["wrong"] + counted["invented"] <= 5


def test_forms_are_filled_in_rightly_or_not_at_all(texts: dict[str, bytes]) -> None:
    counted: Counter[str] = Counter()
    for name, case in CASES.items():
        members: dict[str, dict[str, Any]] = case["members"]
        schema = {"properties": {key: member["schema"] for key, member in members.items()}}
        prompt = {"name": "form", "prompt": "Read it.", "output": "json", "schema": schema}
        (answer,) = answers(texts[name], [prompt])
        for key, member in members.items():
            counted[kind_of_member(answer["answer"].get(key), member)] += 1
    print(dict(counted))
    assert counted["right"] >= 72
    assert counted["wrong"] + counted["invented"] <= 7


def kind_of_member(value: object, member: dict[str, Any]) -> str:
    if "holds" in member:
        return kind_of(value, [member["holds"]])
    expected = member["value"]
    if value is None:
        return "missed" if expected is not None else "rightly not found"
    if expected is None:
        return "invented"
    return "right" if value == expected else "wrong"
