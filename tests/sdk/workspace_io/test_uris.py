"""A file uri is decoded once, and no decoded segment leads elsewhere."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.uris import file_path, file_uri, shown
from tests.sdk.workspace_io.stage import raises

PIECES = st.sampled_from(
    (
        *(
            "/",
            "//",
            ".",
            "..",
            "%2e",
            "%2E%2e",
            "%2F",
            "%2f..",
            "%5C",
            "\\",
            "%00",
            "%252e",
            "%25",
        ),
        *("a", "~", "%C3%A9", "%FF", "?", "#", "@", ":", "localhost", " ", "\t", "[", "]", "%0a"),
    )
)
URIS = st.lists(PIECES | st.text(max_size=3), max_size=12).map(lambda parts: "".join(parts))


@given(URIS)
def test_a_path_has_no_step_upwards_and_no_hidden_separator(text: str) -> None:
    try:
        path = file_path(f"file://{text}")
    except NonRetryableError:
        return
    assert path.is_absolute()
    assert os.path.normpath(path) == str(path)
    assert not set(str(path)) & {"\\", "\0", "\n"}
    assert file_path(file_uri(path)) == path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///data/a.pdf", "/data/a.pdf"),
        ("file://localhost/data/a.pdf", "/data/a.pdf"),
        ("FILE:///data/a.pdf", "/data/a.pdf"),
        ("file:///data/a%20b%3F.pdf", "/data/a b?.pdf"),
        ("file:///data/a%2520b", "/data/a%20b"),
        ("file:///data//a/", "/data/a"),
    ],
)
def test_well_formed_uris_are_paths(uri: str, path: str) -> None:
    assert file_path(uri) == Path(path)


@pytest.mark.parametrize(
    "uri",
    [
        *("file:///a/../b", "file:///a/%2e%2E/b", "file:///a/..%2F..%2Fetc", "file:///a%2Fb"),
        *("file:///a%5Cb", "file:///a\\b", "file:///a%00", "file:///a%0A", "file:///a b", "file:a"),
        *("file://host/a", "file:///a?b", "file:///a#b", "file:///a?", "file:///%FF", "a/b", ""),
        *("file:///a/./b", "az://container/a", "file://[/a", "file:///a\n"),
    ],
)
def test_other_uris_are_refused(uri: str) -> None:
    with raises(ErrorCode.INPUT_INVALID):
        file_path(uri)


def test_what_is_shown_of_a_uri_holds_no_secret() -> None:
    assert shown("https://user:secret@host/a?sig=secret#secret") == "https://host/a"
    assert shown("file:///data/a@b.pdf") == "file:///data/a@b.pdf"
