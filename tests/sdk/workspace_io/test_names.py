"""A name that is allowed names a file below the folder, and nothing else."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.names import check_name
from lucius_sdk.workspace_io.uris import child_uri, file_path
from tests.sdk.workspace_io.stage import raises

FOLDER = Path("/data/lucius/acme/job_1/ocr/1")

TRICKY = st.sampled_from(
    (
        *("", ".", "..", "...", "~", "~2", "a", "ß", "/", "//", "\\", "\0", "\n", "%2e", "%2F"),
        *("%", "?", "#", ";", " ", "\x85", "\ud800", ".lucius-", ".hidden", "C:"),
        *("a" * 255, "é" * 128),
    )
)
NAMES = st.lists(TRICKY | st.text(max_size=4), max_size=6).map("".join)


@given(NAMES)
def test_a_name_that_is_allowed_stays_in_the_folder_on_its_way_through_a_uri(name: str) -> None:
    try:
        check_name(name)
    except NonRetryableError:
        return
    path = file_path(child_uri(FOLDER.as_uri(), name))
    assert path == FOLDER / name
    assert Path(os.path.normpath(path)).is_relative_to(FOLDER)
    assert path != FOLDER
    assert not path.relative_to(FOLDER).parts[0].startswith("~")


@pytest.mark.parametrize(
    "name", ["output.txt", "pages/1.png", ".hidden", "a~b", "été.txt", "a b%20?#.txt", "a" * 255]
)
def test_ordinary_names_are_allowed(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        *("", "/etc/passwd", "a/", "a//b", "..", "a/../b", ".", "...", "~2/x", "a/~b", "a\\b"),
        *("a\0b", "a\nb", "\x7f", "é" * 128, "\ud800", ".lucius-x", "a/.lucius-x.part"),
        "a/" * 600 + "a",
    ],
)
def test_other_names_are_refused_as_a_defect_of_the_service(name: str) -> None:
    with raises(ErrorCode.INTERNAL, "the artifact name"):
        check_name(name)
