"""What a job gets from the step, and what it is told when it gets nothing."""

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lucius_sdk.testing import StepRun, run_step
from lucius_vectors import load_model, read_vectors

from embedding_service.execute import service
from embedding_service.settings import SettingsInvalid

LETTER = (Path(__file__).parents[1] / "samples" / "letter.txt").read_bytes()


def run(payload: dict[str, Any] | None = None, input: bytes = LETTER, **more: Any) -> StepRun:
    done = run_step(service, payload, input, **more)
    assert done.status == "SUCCEEDED", done.error
    return done


def refused(payload: dict[str, Any] | None = None, input: bytes = LETTER) -> tuple[str, str]:
    done = run_step(service, payload, input)
    assert (done.status, done.files, done.published) == ("FAILED_FINAL", {}, None)
    assert done.error is not None
    return done.error.code, done.error.message


def test_a_text_becomes_a_vector_document() -> None:
    done = run({"chunk_size": 40, "overlap": 10})
    document = read_vectors(done.files["vectors.json"])
    text, model = LETTER.decode(), load_model()
    assert (document.model, document.dimension) == ("all-minilm-l6-v2", 384)
    assert (document.chunk_size, document.overlap, document.characters) == (40, 10, len(text))
    assert len(document.chunks) == 3
    assert all(chunk.text == text[chunk.start : chunk.end] for chunk in document.chunks)
    assert document.vectors == pytest.approx(
        model.embed([chunk.text for chunk in document.chunks]), abs=1e-6
    )


def test_the_document_is_published() -> None:
    done = run()
    assert done.published == done.files["vectors.json"]
    assert [artifact.media_type for artifact in done.artifacts] == ["application/json"]


def test_parameters_that_are_left_out_have_defaults() -> None:
    value = run().json("vectors.json")
    assert (value["chunk_size"], value["overlap"]) == (200, 40)
    assert run({"chunk_size": 20}).json("vectors.json")["overlap"] == 4


def test_after_an_ocr_step_its_text_is_taken_and_not_the_input() -> None:
    done = run(input=b"%PDF-1.7 a scan", prior={"OCR": {"output.txt": LETTER, "pages.json": b"[]"}})
    assert done.files == run().files


def test_an_ocr_step_that_wrote_no_text_is_told() -> None:
    done = run_step(service, input=LETTER, prior={"OCR": {"pages.json": b"[]"}})
    assert (done.status, done.code) == ("FAILED_FINAL", "INPUT_NOT_FOUND")


def test_steps_of_other_types_do_not_matter() -> None:
    assert run(prior={"LAYOUT": {"output.txt": b"other"}}).files == run().files


def test_a_large_document_has_its_vectors_in_a_second_file(monkeypatch: pytest.MonkeyPatch) -> None:
    payload = {"chunk_size": 20}
    small = read_vectors(run(payload).files["vectors.json"])
    monkeypatch.setenv("EMBEDDING_JSON_CHUNKS", str(len(small.chunks)))
    assert list(run(payload).files) == ["vectors.json"]
    monkeypatch.setenv("EMBEDDING_JSON_CHUNKS", str(len(small.chunks) - 1))
    done = run(payload)
    large = read_vectors(done.files["vectors.json"], io.BytesIO(done.files["vectors.npy"]))
    assert large.chunks == small.chunks
    assert large.vectors == pytest.approx(small.vectors, abs=1e-6)
    assert (np.load(io.BytesIO(done.files["vectors.npy"])) == large.vectors).all()
    assert done.published == done.files["vectors.json"]
    matrix = next(artifact for artifact in done.artifacts if artifact.name == "vectors.npy")
    assert done.json("vectors.json")["vectors"] == {
        "file": "vectors.npy",
        "uri": matrix.uri,
        "sha256": matrix.sha256,
        "dtype": "float32",
        "shape": [len(large.chunks), 384],
    }


@pytest.mark.parametrize("blank", [b"", b" \n\f\n", b"\xef\xbb\xbf"])
def test_a_blank_page_has_an_empty_document(blank: bytes) -> None:
    document = read_vectors(run(input=blank).files["vectors.json"])
    assert (document.chunks, document.vectors.shape) == ([], (0, 384))


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert run(input=b"\xef\xbb\xbf" + LETTER).files == run().files


def test_the_same_text_has_the_same_document() -> None:
    assert run().files == run(attempt_no=2).files


def test_offsets_count_characters_and_not_bytes() -> None:
    text = "\U0001f44d\u00e9\u00e9. Z\u00fcrich liegt am See."
    (chunk,) = json.loads(run(input=text.encode()).files["vectors.json"])["chunks"]
    assert (chunk["start"], chunk["end"], chunk["text"]) == (0, len(text), text)


def test_it_tells_how_far_it_is() -> None:
    progress = run({"chunk_size": 20}).progress
    assert progress is not None
    assert (progress.fraction, progress.note) == (1.0, "chunk 6 of 6")


def test_a_cancelled_job_leaves_nothing_behind() -> None:
    done = run_step(service, {"chunk_size": 5}, LETTER, cancel=True)
    assert (done.code, done.files, done.published) == ("CANCELLED", {}, None)


@pytest.mark.parametrize(
    ("payload", "told"),
    [
        ({"chunk_size": 0}, "/payload/chunk_size"),
        ({"chunk_size": "many"}, "/payload/chunk_size"),
        ({"chunk_size": 255}, "at most 254"),
        ({"overlap": -1}, "/payload/overlap"),
        ({"chunk_size": 40, "overlap": 40}, "overlap must be less than chunk_size"),
        ({"overlap": 200}, "overlap must be less than chunk_size"),
        ({"model": ""}, "/payload/model"),
        ({"size": 40}, "/payload/size"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(payload: dict[str, Any], told: str) -> None:
    code, message = refused(payload)
    assert code == "PAYLOAD_INVALID"
    assert told in message


def test_the_longest_chunk_is_what_the_model_takes() -> None:
    assert run({"chunk_size": load_model().max_tokens}).json("vectors.json")["chunk_size"] == 254


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    code, message = refused({"model": "word2vec"})
    assert code == "EMBEDDING_MODEL_UNKNOWN"
    assert "'word2vec'; known: all-minilm-l6-v2" in message


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("Stra\u00dfe".encode("latin-1"), "byte 4 is not UTF-8"),
        ("lamp".encode("utf-16"), "it is UTF-16"),
        ("lamp".encode("utf-16-le"), "NUL"),
        (LETTER + b"\xff", f"byte {len(LETTER)} is not UTF-8"),
        (b"%PDF-1.7", "needs an OCR step"),
        (b"\x89PNG\r\n\x1a\n", "byte 0 is not UTF-8"),
    ],
)
def test_what_is_no_text_in_utf_8_is_refused(content: bytes, told: str) -> None:
    code, message = refused(input=content)
    assert code == "INPUT_INVALID"
    assert told in message


def test_a_text_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_MAX_CHARACTERS", "10")
    assert run(input=b"ten chars.").status == "SUCCEEDED"
    assert run(input="\U0001f44d".encode() * 10).status == "SUCCEEDED"
    for content in (b"eleven char", b"x" * 41):
        code, message = refused(input=content)
        assert code == "INPUT_TOO_LARGE"
        assert "10" in message or "40" in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("EMBEDDING_JSON_CHUNKS", "-1"),
        ("EMBEDDING_MAX_CHARACTERS", "0"),
        ("EMBEDDING_THREADS", "all"),
        ("EMBEDDING_THREADS", "65"),
    ],
)
def test_a_wrong_setting_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsInvalid, match=f"{name} must be a whole number from"):
        run_step(service, input=LETTER)


def test_an_empty_setting_counts_as_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_THREADS", " ")
    assert run().status == "SUCCEEDED"
