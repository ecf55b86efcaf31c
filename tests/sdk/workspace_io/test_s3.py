"""Objects of S3: parts and their commit, what two runs meet, what the store says, and uris."""

import io
from functools import partial
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from hypothesis import given

from lucius_contract.errors import ErrorCode
from lucius_sdk.error_model import NonRetryableError
from lucius_sdk.workspace_io.access import is_below
from lucius_sdk.workspace_io.s3.faults import faults, reading, writing
from lucius_sdk.workspace_io.s3.places import Place, folder_place, object_place
from tests.sdk.workspace_io.objects import create, pattern, publish, read
from tests.sdk.workspace_io.reopening import BLOCK
from tests.sdk.workspace_io.stage import S3Stage, fence, raises
from tests.sdk.workspace_io.test_uris import URIS

ROOT = Place("work", ("jobs",))


@given(URIS)
def test_a_key_has_no_step_upwards_and_no_hidden_separator(text: str) -> None:
    for uri in (f"s3://{text}", f"s3://work/jobs/{text}"):
        try:
            place = object_place(uri)
        except NonRetryableError:
            continue
        assert all(segment.strip(".") for segment in place.segments)
        assert not set(place.key) & {"\\", "\0", "\n"}
        assert object_place(place.uri) == place
        if uri.startswith("s3://work/jobs/"):
            assert is_below(place.location, ROOT.location)


@pytest.mark.parametrize(
    ("uri", "bucket", "key"),
    [
        ("s3://work/a.pdf", "work", "a.pdf"),
        ("S3://my.work-2/a/b", "my.work-2", "a/b"),
        ("s3://work/a%20b%3F%23.pdf", "work", "a b?#.pdf"),
        ("s3://work/a%2520b", "work", "a%20b"),
        ("s3://work/%C3%A9", "work", "é"),
    ],
)
def test_well_formed_uris_are_objects(uri: str, bucket: str, key: str) -> None:
    assert object_place(uri)[0] == bucket
    assert object_place(uri).key == key


@pytest.mark.parametrize(
    "uri",
    [
        *("s3://work", "s3://work/", "s3://work/a/", "s3://work//a", "s3:///a", "s3:work/a"),
        *("s3://work/a/../b", "s3://work/%2e%2E/b", "s3://work/a%2Fb", "s3://work/a%5Cb"),
        *("s3://Work/a", "s3://wo/a", "s3://a..b/a", "s3://-ab/a", "s3://ab-/a", "s3://a_b/a"),
        *("s3://me:pw@work/a", "s3://work:80/a", "s3://work/a?versionId=1", "az://work/a"),
        "s3://work/" + "%C3%A9" * 513,
    ],
)
def test_other_uris_are_refused(uri: str) -> None:
    with raises(ErrorCode.INPUT_INVALID):
        object_place(uri)


def test_a_folder_may_be_a_whole_bucket_and_end_with_a_slash() -> None:
    assert folder_place("s3://work") == folder_place("s3://work/") == Place("work", ())
    assert folder_place("s3://work/jobs/") == folder_place("s3://work/jobs") == ROOT


def test_the_media_type_and_the_fence_lie_with_the_object(s3_stage: S3Stage) -> None:
    for name, content in (("small", b"abc"), ("large", pattern(2 * BLOCK))):
        s3_stage.storage.publish(
            s3_stage.uri(name), partial(io.BytesIO, content), fence(2), "text/csv"
        )
        found = s3_stage.client.head_object(Bucket=s3_stage.bucket, Key=f"root/{name}")
        assert found["ContentType"] == "text/csv"
        assert found["Metadata"] == {"lucius-fence": "acme/job_1/step_03/2/1"}


def test_an_object_that_is_replaced_while_it_is_read_is_an_error(s3_stage: S3Stage) -> None:
    create(s3_stage.storage, s3_stage.uri("a"), pattern(3 * BLOCK))
    with s3_stage.storage.open_read(s3_stage.uri("a")) as stream:
        assert stream.read(10) == pattern(10)
        create(s3_stage.storage, s3_stage.uri("a"), pattern(4 * BLOCK))
        with raises(ErrorCode.STORAGE_UNAVAILABLE, "was replaced"):
            stream.read()


@pytest.mark.parametrize(
    ("status", "code"), [(404, "NoSuchUpload"), (409, "ConditionalRequestConflict")]
)
def test_parts_that_are_gone_are_sent_again(
    s3_stage: S3Stage, monkeypatch: pytest.MonkeyPatch, status: int, code: str
) -> None:
    client = s3_stage.storage._client.get()._client
    join, opened = client.complete_multipart_upload, 0

    def lose(**_: object) -> None:
        monkeypatch.setattr(client, "complete_multipart_upload", join)
        raise _answered(status, code)

    def source() -> io.BytesIO:
        nonlocal opened
        opened += 1
        return io.BytesIO(pattern(3 * BLOCK))

    monkeypatch.setattr(client, "complete_multipart_upload", lose)
    s3_stage.storage.publish(s3_stage.uri("a"), source, fence(2), "text/plain")
    assert read(s3_stage.storage, s3_stage.uri("a")) == pattern(3 * BLOCK)
    assert opened == 2
    assert s3_stage.unfinished() == []


def test_an_object_that_vanished_meanwhile_is_published_anew(s3_stage: S3Stage) -> None:
    storage, uri = s3_stage.storage, s3_stage.uri("a")
    publish(storage, uri)
    buckets = storage._client.get()
    head = buckets._client.head_object

    def vanish(**named: str) -> Any:
        found = head(**named)
        s3_stage.client.delete_object(Bucket=s3_stage.bucket, Key="root/a")
        return found

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(buckets._client, "head_object", vanish)
        storage.publish(uri, lambda: io.BytesIO(b"again"), fence(2), "text/plain")
    assert s3_stage.visible() == {"a": b"again"}


def _answered(status: int, code: str) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": "secret=hidden"},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(response, "PutObject")


@pytest.mark.parametrize(
    ("fault", "to_read", "to_write"),
    [
        (_answered(404, "NoSuchKey"), ErrorCode.INPUT_NOT_FOUND, ErrorCode.STORAGE_UNAVAILABLE),
        (_answered(404, "NoSuchBucket"), *(2 * [ErrorCode.STORAGE_UNAVAILABLE])),
        (_answered(403, "AccessDenied"), *(2 * [ErrorCode.STORAGE_UNAVAILABLE])),
        (_answered(400, "InvalidArgument"), ErrorCode.INPUT_INVALID, ErrorCode.INTERNAL),
        (
            _answered(501, "NotImplemented"),
            ErrorCode.STORAGE_UNAVAILABLE,
            ErrorCode.OUTPUT_UNSUPPORTED,
        ),
        (_answered(503, "SlowDown"), *(2 * [ErrorCode.RATE_LIMITED])),
        (_answered(500, "InternalError"), *(2 * [ErrorCode.STORAGE_UNAVAILABLE])),
        (NoCredentialsError(), *(2 * [ErrorCode.STORAGE_UNAVAILABLE])),
        (EndpointConnectionError(endpoint_url="http://x"), *(2 * [ErrorCode.STORAGE_UNAVAILABLE])),
    ],
)
def test_what_the_store_says_is_what_it_means_for_a_step(
    fault: Exception, to_read: ErrorCode, to_write: ErrorCode
) -> None:
    for meaning, code in ((reading, to_read), (writing, to_write)):
        with raises(code, "^(?!.*hidden)"), faults(meaning, "s3://work/a"):
            raise fault
