"""What it means for a step when the blob service refuses, hangs or is away."""

import time

import pytest

from lucius_contract.errors import ErrorCode
from lucius_sdk.workspace_io import BlobStorage
from lucius_sdk.workspace_io.blob.account import AT_ONCE as AT_ONCE_OPTIONS
from lucius_sdk.workspace_io.blob.account import Patience
from tests.azure_proxy import Refusal
from tests.azurite import Azurite
from tests.sdk.workspace_io.far import AT_ONCE, OpenThrough
from tests.sdk.workspace_io.objects import Write, both_ways_to_write, create, pattern, read
from tests.sdk.workspace_io.objects import publish as publish_at
from tests.sdk.workspace_io.proxy import Fault, Proxy, proxy_to
from tests.sdk.workspace_io.reopening import BLOCK, blob_storage
from tests.sdk.workspace_io.stage import BlobStage, raises

LARGE = 2 * BLOCK + 100


@pytest.fixture
def stage(blob_stage: BlobStage) -> BlobStage:
    return blob_stage


PASSING = [
    (401, "", ErrorCode.STORAGE_UNAVAILABLE),
    (403, "AuthorizationFailure", ErrorCode.STORAGE_UNAVAILABLE),
    (404, "ContainerNotFound", ErrorCode.STORAGE_UNAVAILABLE),
    (408, "", ErrorCode.TIMEOUT),
    (409, "ContainerBeingDeleted", ErrorCode.STORAGE_UNAVAILABLE),
    (429, "", ErrorCode.RATE_LIMITED),
    (500, "OperationTimedOut", ErrorCode.STORAGE_UNAVAILABLE),
    (503, "ServerBusy", ErrorCode.STORAGE_UNAVAILABLE),
]


@pytest.mark.parametrize(
    ("status", "code", "meaning"),
    [
        *PASSING,
        (400, "InvalidUri", ErrorCode.INPUT_INVALID),
        (404, "BlobNotFound", ErrorCode.INPUT_NOT_FOUND),
        (409, "BlobArchived", ErrorCode.INPUT_INVALID),
    ],
)
def test_a_status_says_whether_reading_again_can_help(
    far: BlobStorage, stage: BlobStage, proxy: Proxy, status: int, code: str, meaning: ErrorCode
) -> None:
    proxy.rule = lambda _: Refusal(status, code)
    for look in (far.open_read, far.size_of):
        with raises(meaning, r"root/a\b"):
            look(stage.uri("a"))


@both_ways_to_write
@pytest.mark.parametrize("size", [10, LARGE])
@pytest.mark.parametrize(
    ("status", "code", "meaning"),
    [
        *PASSING,
        (400, "InvalidUri", ErrorCode.INTERNAL),
        (409, "BlobImmutableDueToPolicy", ErrorCode.OUTPUT_CONFLICT),
        (412, "LeaseIdMissing", ErrorCode.STORAGE_UNAVAILABLE),
    ],
)
def test_a_status_says_whether_writing_again_can_help(
    far: BlobStorage,
    stage: BlobStage,
    proxy: Proxy,
    write: Write,
    size: int,
    status: int,
    code: str,
    meaning: ErrorCode,
) -> None:
    proxy.rule = lambda asked: Refusal(status, code) if asked.method == "PUT" else None
    with raises(meaning, r"root/a\b"):
        write(far, stage.uri("a"), pattern(size))
    assert stage.visible() == {}


def test_a_busy_service_is_asked_again_when_it_says(
    open_through: OpenThrough,
    stage: BlobStage,
    proxy: Proxy,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept: list[float] = []
    monkeypatch.setattr(time, "sleep", slept.append)
    busy = [Refusal(503, "ServerBusy", {"Retry-After": after}) for after in ("7", "3600", "")]
    proxy.next(*busy)
    create(open_through(Patience(waits=(1.0, 1.0, 1.0))), stage.uri("a"))
    assert stage.visible() == {"a": b"new"}
    assert slept[:2] == [7.0, 30.0]
    assert 0.8 <= slept[2] <= 1.2
    assert len(slept) == 3


def test_a_service_that_hangs_is_a_passing_fault(
    open_through: OpenThrough, stage: BlobStage, proxy: Proxy
) -> None:
    storage = open_through(Patience(answer=0.05, waits=(0.0,)))
    proxy.rule = lambda _: Fault.HANGING
    for attempt in (
        lambda: create(storage, stage.uri("a")),
        lambda: publish_at(storage, stage.uri("a")),
        lambda: read(storage, stage.uri("a")),
    ):
        before = len(proxy.asked)
        with raises(ErrorCode.TIMEOUT, "took too long"):
            attempt()
        assert len(proxy.asked) == before + 2


def test_a_look_whether_it_is_there_asks_once_and_writes_nothing(
    open_through: OpenThrough, stage: BlobStage, proxy: Proxy
) -> None:
    storage = open_through(Patience())
    storage.check()
    assert proxy.verbs == ["GET container"]
    for fault in (Refusal(503, "ServerBusy"), Fault.DROPPED):
        proxy.asked.clear()
        proxy.next(fault)
        with raises(ErrorCode.STORAGE_UNAVAILABLE):
            storage.check()
        assert proxy.verbs == ["GET container"]
    assert stage.is_untouched()


def test_a_look_at_a_service_that_hangs_has_an_end(
    open_through: OpenThrough, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert AT_ONCE_OPTIONS["connection_timeout"] + AT_ONCE_OPTIONS["read_timeout"] < 10
    monkeypatch.setitem(AT_ONCE_OPTIONS, "read_timeout", 0.05)
    proxy.rule = lambda _: Fault.HANGING
    with raises(ErrorCode.STORAGE_UNAVAILABLE):
        open_through(Patience()).check()
    assert len(proxy.asked) == 1


def test_a_service_that_is_away_is_a_passing_fault(
    azure_storage: Azurite, stage: BlobStage
) -> None:
    with proxy_to(azure_storage.blob) as gone:
        connection = azure_storage._replace(blob=gone.url).connection
    storage = blob_storage(connection, stage.root, patience=AT_ONCE)
    for attempt in (
        storage.prepare,
        storage.check,
        lambda: create(storage, stage.uri("a")),
        lambda: read(storage, stage.uri("a")),
    ):
        with raises(ErrorCode.STORAGE_UNAVAILABLE):
            attempt()
    storage.close()
