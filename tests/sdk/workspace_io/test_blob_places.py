"""A uri of a blob is decoded once, and no decoded segment leads elsewhere."""

import pytest
from hypothesis import given

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.access import is_below
from lucius_sdk.workspace_io.blob.places import Place, blob_place, folder_place
from tests.sdk.workspace_io.stage import raises
from tests.sdk.workspace_io.test_uris import URIS

ROOT = Place("work", ("jobs",))


@given(URIS)
def test_a_name_has_no_step_upwards_and_no_hidden_separator(text: str) -> None:
    for uri in (f"az://{text}", f"az://work/jobs/{text}"):
        try:
            place = blob_place(uri)
        except NonRetryableError:
            continue
        assert all(segment.strip(".") for segment in place.segments)
        assert not set(place.name) & {"\\", "\0", "\n"}
        assert len(place.name.split("/")) == len(place.segments) >= 1
        assert blob_place(place.uri) == place
        if uri.startswith("az://work/jobs/"):
            assert is_below(place.location, ROOT.location)


@pytest.mark.parametrize(
    ("uri", "container", "name"),
    [
        ("az://work/a.pdf", "work", "a.pdf"),
        ("AZ://work/a.pdf", "work", "a.pdf"),
        ("az://a-b/c", "a-b", "c"),
        ("az://my-work2/lucius/a/b", "my-work2", "lucius/a/b"),
        ("az://work/a%20b%3F%23.pdf", "work", "a b?#.pdf"),
        ("az://work/a%2520b", "work", "a%20b"),
        ("az://work/%C3%A9", "work", "é"),
        ("az://work/" + "a" * 1024, "work", "a" * 1024),
        ("az://work/" + "%C3%A9" * 400, "work", "é" * 400),
    ],
)
def test_well_formed_uris_are_blobs(uri: str, container: str, name: str) -> None:
    place = blob_place(uri)
    assert (place.container, place.name) == (container, name)


@pytest.mark.parametrize(
    "uri",
    [
        *("az://work", "az://work/", "az://work/a/", "az://work//a", "az://work/a//b", "az:///a"),
        *("az://work/a/../b", "az://work/%2e%2E/b", "az://work/a%2Fb", "az://work/a%5Cb"),
        *("az://work/a%00", "az://work/a b", "az://work/a?b", "az://work/a#b", "az://work/%FF"),
        *("az://Work/a", "az://wo/a", "az://a--b/a", "az://-ab/a", "az://ab-/a", "az://a_b/a"),
        *("az://user@work/a", "az://work:80/a", "az://" + "a" * 64 + "/a"),
        *("az://" + "a-" * 32 + "a/a", "https://work/a"),
        *("az://work/" + "a" * 1025, "az://work" + "/a" * 255, "file:///work/a", "az:work/a"),
    ],
)
def test_other_uris_are_refused(uri: str) -> None:
    with raises(ErrorCode.INPUT_INVALID):
        blob_place(uri)


def test_a_folder_may_be_a_whole_container_and_end_with_a_slash() -> None:
    assert folder_place("az://work") == folder_place("az://work/") == Place("work", ())
    assert folder_place("az://work/jobs/") == folder_place("az://work/jobs") == ROOT
    assert is_below(blob_place("az://work/a").location, ("work",))
    with raises(ErrorCode.INPUT_INVALID):
        folder_place("az://work/jobs//")


def test_what_is_below_a_folder_is_told_by_whole_segments() -> None:
    assert is_below(blob_place("az://work/jobs/a").location, ROOT.location)
    for other in ("az://work/jobs", "az://work/jobs2/a", "az://work/a", "az://other/jobs/a"):
        assert not is_below(blob_place(other).location, ROOT.location)
