"""From where a step takes its document, and what it makes of it."""

import json
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import pytest
from lucius_sdk import ErrorCode, RetryableError
from lucius_sdk.testing import StepRun, run_step
from lucius_sdk.workspace_io import LocalStorage

from sis_service import source
from sis_service.execute import service

Vectors = Callable[..., dict[str, bytes]]

TOTAL = {"name": "total", "prompt": "What is the total amount due?", "output": "text"}
LETTER = """\
Dear Ms. Okafor,

we thank you for your order. The goods leave our house on 9 June 2026.

The total amount due is EUR 4,711.20. Please pay it within 30 days.
"""


def ask(
    *prompts: dict[str, Any], text: bytes = LETTER.encode(), **arguments: Any
) -> tuple[StepRun, list[dict[str, Any]]]:
    done = run_step(service, {"prompt_set": list(prompts or (TOTAL,))}, text, **arguments)
    return done, done.json("result.json")["answers"] if done.files else []


def test_a_text_is_answered_from_with_the_place_of_the_answer() -> None:
    done, (answer,) = ask()
    assert done.status == "SUCCEEDED"
    assert answer["answer"] == "The total amount due is EUR 4,711.20."
    place = answer["source"]
    assert LETTER[place["start"] : place["end"]] == place["text"] == answer["answer"]
    assert 0.35 <= answer["score"] <= 1


def test_the_result_says_how_it_came_about_and_is_published() -> None:
    done, _ = ask()
    result = done.json("result.json")
    assert [result[key] for key in ("format", "engine", "model")] == [
        "lucius.sis/1",
        "extractive",
        "all-minilm-l6-v2",
    ]
    assert done.published == done.files["result.json"]
    assert [artifact.media_type for artifact in done.artifacts] == ["application/json"]


def test_passages_are_told_with_their_scores_the_nearest_first(invoice: bytes) -> None:
    _, (answer,) = ask(text=invoice)
    scores = [passage["score"] for passage in answer["passages"]]
    text = invoice.decode()
    assert len(scores) > 1
    assert scores == sorted(scores, reverse=True)
    for passage in answer["passages"]:
        assert text[passage["start"] : passage["end"]] == passage["text"]


def test_prompts_are_answered_in_their_order_and_counted() -> None:
    names = ["third", "first", "second"]
    done, answers = ask(*(TOTAL | {"name": name} for name in names))
    assert [answer["name"] for answer in answers] == names
    assert done.progress
    assert (done.progress.fraction, done.progress.note) == (1.0, "prompt 3 of 3")


def test_vectors_of_a_step_before_are_taken_instead_of_the_input(vectors: Vectors) -> None:
    done, (answer,) = ask(text=b"nobody reads this", prior={"EMBEDDING": vectors(LETTER)})
    assert answer["answer"] == "The total amount due is EUR 4,711.20."
    place = answer["source"]
    assert LETTER[place["start"] : place["end"]] == place["text"]
    assert done.json("result.json")["model"] == "all-minilm-l6-v2"


def test_vectors_in_a_second_file_are_taken_too(vectors: Vectors) -> None:
    prior = {"EMBEDDING": vectors(LETTER, apart=True)}
    assert ask(prior=prior)[1] == ask(prior={"EMBEDDING": vectors(LETTER)})[1]


def test_an_input_of_vectors_is_known_by_its_content(vectors: Vectors) -> None:
    done, (answer,) = ask(text=vectors(LETTER)["vectors.json"])
    assert answer["answer"] == "The total amount due is EUR 4,711.20."
    assert done.status == "SUCCEEDED"


def test_a_sentence_that_was_cut_in_two_is_answered_whole(vectors: Vectors) -> None:
    _, (answer,) = ask(prior={"EMBEDDING": vectors(LETTER, size=12)})
    assert answer["answer"] == "The total amount due is EUR 4,711.20."


def changed(document: bytes, **members: Any) -> dict[str, bytes]:
    return {"vectors.json": json.dumps(json.loads(document) | members).encode()}


def test_vectors_of_a_model_that_is_not_here_are_refused_for_good(vectors: Vectors) -> None:
    prior = {"EMBEDDING": changed(vectors(LETTER)["vectors.json"], model="ada-9")}
    done, _ = ask(prior=prior)
    assert (done.status, done.code) == ("FAILED_FINAL", "SIS_MODEL_UNKNOWN")
    assert done.error
    assert "'ada-9'" in done.error.message


def test_damaged_vectors_are_refused_for_good(vectors: Vectors) -> None:
    whole = vectors(LETTER)["vectors.json"]
    apart = vectors(LETTER, apart=True)
    for broken in (
        {"vectors.json": whole[:-40]},
        changed(whole, dimension=3),
        changed(whole, characters=3),
        {"vectors.json": apart["vectors.json"]},
        apart | {"vectors.npy": apart["vectors.npy"][:-4]},
    ):
        done, _ = ask(prior={"EMBEDDING": broken})
        assert (done.status, done.code) == ("FAILED_FINAL", "INPUT_INVALID")


def test_vectors_of_another_length_than_the_models_are_refused(vectors: Vectors) -> None:
    document = json.loads(vectors(LETTER)["vectors.json"])
    document["dimension"] = 2
    document["chunks"] = [chunk | {"vector": [1.0, 0.0]} for chunk in document["chunks"]]
    done, _ = ask(prior={"EMBEDDING": {"vectors.json": json.dumps(document).encode()}})
    assert done.code == "INPUT_INVALID"


def test_a_step_before_that_wrote_no_vectors_is_an_error() -> None:
    done, _ = ask(prior={"EMBEDDING": {"notes.txt": b""}})
    assert (done.status, done.code) == ("FAILED_FINAL", "INPUT_NOT_FOUND")


def test_of_an_empty_document_nothing_is_found(vectors: Vectors) -> None:
    form = TOTAL | {"name": "form", "output": "json", "schema": {"type": "object"}}
    sources: list[dict[str, Any]] = [
        {"text": b""},
        {"text": b" \n\n"},
        {"prior": {"EMBEDDING": vectors("")}},
    ]
    for where in sources:
        done, answers = ask(TOTAL, form, **where)
        assert done.status == "SUCCEEDED"
        assert [answer["found"] for answer in answers] == [False, False]
        assert {answer["reason"] for answer in answers} == {"the document has no text"}


@pytest.mark.parametrize("content", [b"%PDF-1.7\n\xe2\xe3\xcf\xd3", b"\xff\xfea\0", b"a\0b\0"])
def test_an_input_that_is_no_text_is_refused_for_good(content: bytes) -> None:
    done, _ = ask(text=content)
    assert (done.status, done.code) == ("FAILED_FINAL", "INPUT_INVALID")
    assert done.error
    assert "OCR" in done.error.message


def test_a_text_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MOST_TEXT", 100)
    done, _ = ask(text=b"x" * 101)
    assert (done.status, done.code) == ("FAILED_FINAL", "INPUT_TOO_LARGE")


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    _, (answer,) = ask(text=b"\xef\xbb\xbf" + LETTER.encode())
    place = answer["source"]
    assert LETTER[place["start"] : place["end"]] == place["text"]


def test_a_cancelled_step_leaves_nothing_behind() -> None:
    done, _ = ask(cancel=True)
    assert (done.code, done.files, done.published) == ("CANCELLED", {}, None)


def test_storage_that_is_away_is_worth_another_attempt() -> None:
    away = RetryableError(ErrorCode.STORAGE_UNAVAILABLE, "the volume is away")
    for verb in ("open_read", "create", "publish"):
        with patch.object(LocalStorage, verb, side_effect=away):
            assert run_step(service, {"prompt_set": [TOTAL]}).status == "FAILED_RETRY"


def test_the_same_step_twice_gives_the_same() -> None:
    assert ask()[0].files == ask()[0].files
