from lucius_sdk.testing import run_step

from {{ cookiecutter.package_name }}.execute import service


def test_words_are_counted_and_published() -> None:
    done = run_step(service, input=b"To be or not to be")
    assert done.status == "SUCCEEDED"
    assert done.json("words.json") == {"words": 6, "different": 4}
    assert done.published == done.files["words.json"]


def test_short_words_are_left_out() -> None:
    done = run_step(service, {"shortest": 3}, input=b"To be or not to be")
    assert done.json("words.json") == {"words": 1, "different": 1}


def test_a_document_without_words_is_refused_for_good() -> None:
    done = run_step(service, input=b"  \n")
    assert (done.status, done.code) == ("FAILED_FINAL", "INPUT_INVALID")


def test_what_is_no_text_is_refused_for_good() -> None:
    done = run_step(service, input=b"\xff\xfe\x00")
    assert (done.status, done.code) == ("FAILED_FINAL", "INPUT_INVALID")


def test_parameters_that_nobody_knows_are_refused() -> None:
    done = run_step(service, {"longest": 3}, input=b"To be or not to be")
    assert (done.status, done.code) == ("FAILED_FINAL", "PAYLOAD_INVALID")
