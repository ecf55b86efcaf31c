from pathlib import Path

import pytest

from contract_tests.contract import ContractUnusable, load_contract

WHOLE = """
contract: 1
service: upper
step_type: UPPER
command: [python, service.py]
valid: {input: {text: hello}}
invalid: {payload: {odd: 1}}
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "contract.yaml"
    path.write_text(text)
    return path


def test_a_short_contract_is_whole(tmp_path: Path) -> None:
    loaded = load_contract(written(tmp_path, WHOLE))
    assert loaded.contract.concurrency == 4
    assert [str(way) for way in loaded.contract.reply_via] == ["http", "bus"]
    assert loaded.contract.valid.input is not None
    assert loaded.content_of(loaded.contract.valid.input) == b"hello"


def test_a_folder_stands_for_the_contract_in_it(tmp_path: Path) -> None:
    written(tmp_path, WHOLE)
    assert load_contract(tmp_path).contract.service == "upper"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("concurency: 3", "/concurency: Extra inputs are not permitted"),
        ("concurrency: 0", "/concurrency"),
        ("reply_via: [smoke]", "/reply_via/0"),
        ("ref_schemes: [az]", "ref_schemes must have http"),
        ("slow: {payload: {}}", "the sample slow needs an input or prior_artifacts to read"),
        ("slow: {input: {file: missing.txt}}", "there is no file missing.txt"),
        ("slow: {input: {name: x}}", "give either `file` or `text`"),
        ("working_directory: nowhere", "there is no folder nowhere"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, change: str, told: str) -> None:
    path = written(tmp_path, WHOLE + change + "\n")
    with pytest.raises(ContractUnusable) as found:
        load_contract(path)
    assert told in str(found.value)
    assert str(path) in str(found.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [("a: [", "cannot be read"), ("- a", "must be a mapping"), ("contract: 2", "/contract")],
)
def test_a_file_that_is_no_contract_is_told(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ContractUnusable, match=told):
        load_contract(written(tmp_path, text))


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ContractUnusable, match="there is no such file"):
        load_contract(tmp_path / "none.yaml")
