"""Exceptions of the system and of libraries: which of them pass."""

import errno
import json
import socket
import ssl
import urllib.error
from email.message import Message

import aiohttp
import azure.core.exceptions
import httpx
import pytest
import redis.exceptions
import requests
import urllib3.exceptions
from yarl import URL

from lucius_contract.errors import ERRORS, ErrorCode
from lucius_sdk.faults import code_of

REQUEST = httpx.Request("GET", "https://model.example")
POOL = urllib3.HTTPConnectionPool("model.example")
ASKED = aiohttp.RequestInfo(URL("https://model.example"), "GET", None, URL())  # type: ignore[arg-type]


class _Answered:
    """A response of azure-core, as far as its errors look at it."""

    reason = "because"
    content_type = "text/plain"
    headers: dict[str, str] = {}  # noqa: RUF012

    def __init__(self, status: int) -> None:
        self.status_code = status

    def text(self) -> str:
        return ""


def by_status(status: int) -> list[BaseException]:
    response = requests.Response()
    response.status_code = status
    return [
        httpx.HTTPStatusError("no", request=REQUEST, response=httpx.Response(status)),
        aiohttp.ClientResponseError(ASKED, (), status=status),
        requests.HTTPError("no", response=response),
        azure.core.exceptions.HttpResponseError(response=_Answered(status)),  # type: ignore[arg-type]
        urllib.error.HTTPError("https://model.example", status, "no", Message(), None),
    ]


UNREACHED: list[BaseException] = [
    ConnectionRefusedError(errno.ECONNREFUSED, "refused"),
    BrokenPipeError(errno.EPIPE, "pipe"),
    OSError(errno.EHOSTUNREACH, "no route"),
    socket.gaierror(socket.EAI_AGAIN, "no name"),
    ssl.SSLError(1, "handshake"),
    httpx.ConnectError("refused"),
    httpx.RemoteProtocolError("closed"),
    aiohttp.ServerDisconnectedError(),
    aiohttp.ClientPayloadError("cut"),
    requests.ConnectionError("refused"),
    requests.exceptions.ChunkedEncodingError("cut"),
    urllib3.exceptions.ProtocolError("cut"),
    urllib3.exceptions.MaxRetryError(POOL, "/"),
    urllib.error.URLError("refused"),
    azure.core.exceptions.ServiceRequestError("refused"),
    azure.core.exceptions.IncompleteReadError("cut"),
    redis.exceptions.BusyLoadingError("loading"),
]
SLOW: list[BaseException] = [
    TimeoutError(),
    TimeoutError(errno.ETIMEDOUT, "slow"),
    httpx.ReadTimeout("slow"),
    httpx.PoolTimeout("slow"),
    aiohttp.ServerTimeoutError(),
    aiohttp.ConnectionTimeoutError(),
    requests.exceptions.ReadTimeout("slow"),
    requests.exceptions.ConnectTimeout("slow"),
    urllib3.exceptions.ReadTimeoutError(POOL, "/", "slow"),
    azure.core.exceptions.ServiceResponseTimeoutError("slow"),
    redis.exceptions.TimeoutError("slow"),
]
STORAGE: list[BaseException] = [
    OSError(errno.EIO, "io"),
    OSError(errno.ENOSPC, "full"),
    OSError(errno.EROFS, "read-only"),
    OSError(errno.ESTALE, "stale"),
    OSError(errno.EMFILE, "too many files"),
    PermissionError(errno.EACCES, "denied"),
]
DEFECTS: list[BaseException] = [
    ValueError("bad"),
    TypeError("bad"),
    ZeroDivisionError(),
    AssertionError(),
    MemoryError(),
    OSError("cannot identify image file"),
    OSError(errno.ENAMETOOLONG, "long"),
    FileExistsError(errno.EEXIST, "there"),
    IsADirectoryError(errno.EISDIR, "folder"),
    httpx.UnsupportedProtocol("gopher"),
    httpx.InvalidURL("bad"),
    aiohttp.InvalidURL("bad"),
    requests.exceptions.MissingSchema("bad"),
    urllib3.exceptions.LocationParseError("bad"),
]


def _named(error: object) -> str:
    return f"{type(error).__module__}.{type(error).__name__}-{getattr(error, 'errno', None)}"


@pytest.mark.parametrize("error", UNREACHED, ids=_named)
def test_what_cannot_be_reached_may_be_there_later(error: BaseException) -> None:
    assert code_of(error) is ErrorCode.DEPENDENCY_UNAVAILABLE


@pytest.mark.parametrize("error", SLOW, ids=_named)
def test_what_takes_too_long_may_be_faster_later(error: BaseException) -> None:
    assert code_of(error) is ErrorCode.TIMEOUT


@pytest.mark.parametrize("error", STORAGE, ids=_named)
def test_storage_that_fails_may_work_later(error: BaseException) -> None:
    assert code_of(error) is ErrorCode.STORAGE_UNAVAILABLE


@pytest.mark.parametrize("error", DEFECTS, ids=_named)
def test_everything_else_would_happen_again(error: BaseException) -> None:
    assert code_of(error) is ErrorCode.INTERNAL


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, ErrorCode.INTERNAL),
        (401, ErrorCode.INTERNAL),
        (404, ErrorCode.INTERNAL),
        (408, ErrorCode.TIMEOUT),
        (429, ErrorCode.RATE_LIMITED),
        (500, ErrorCode.DEPENDENCY_UNAVAILABLE),
        (503, ErrorCode.DEPENDENCY_UNAVAILABLE),
    ],
)
def test_the_status_of_an_answer_decides(status: int, code: ErrorCode) -> None:
    for error in by_status(status):
        assert code_of(error) is code, type(error)


def test_a_file_that_is_not_there_is_an_input_that_is_not_there() -> None:
    assert code_of(FileNotFoundError(errno.ENOENT, "none")) is ErrorCode.INPUT_NOT_FOUND


@pytest.mark.parametrize("reader", [json.loads, bytes.decode])
def test_data_that_cannot_be_read_is_an_invalid_input(reader: object) -> None:
    assert callable(reader)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        reader(b"\xff{")
    assert code_of(caught.value) is ErrorCode.INPUT_INVALID


def test_a_class_of_a_team_counts_as_what_it_derives_from() -> None:
    class ModelAway(httpx.ConnectError):
        pass

    assert code_of(ModelAway("away")) is ErrorCode.DEPENDENCY_UNAVAILABLE


def test_only_codes_of_services_are_given() -> None:
    errors = [*UNREACHED, *SLOW, *STORAGE, *DEFECTS]
    assert all("SERVICE" in ERRORS[code_of(error)].written_by for error in errors)
