"""What an answer of Azure Storage means."""

import pytest
from azure.core.exceptions import (
    AzureError,
    ClientAuthenticationError,
    HttpResponseError,
    ResourceExistsError,
    ServiceRequestError,
    ServiceResponseTimeoutError,
)
from azure.core.utils import CaseInsensitiveDict

from lucius_azure.faults import asked_to_wait, code_of, is_forbidden, is_passing, told


class Answer:
    """As much of a response as errors look at."""

    def __init__(self, status: int, text: str = "", **headers: str) -> None:
        self.status_code = status
        self.reason = "Some Reason"
        self.headers = CaseInsensitiveDict(
            {name.replace("_", "-"): value for name, value in headers.items()}
        )
        self.request = None
        self._text = text

    def text(self) -> str:
        return self._text


def answered(status: int, text: str = "", **headers: str) -> HttpResponseError:
    return HttpResponseError("hunter2", response=Answer(status, text, **headers))


@pytest.mark.parametrize("status", [200, 408, 429, 500, 502, 503, 504])
def test_what_passes_is_worth_another_try(status: int) -> None:
    """Also an answer that says yes and cannot be read."""
    assert is_passing(answered(status))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 413, 501])
def test_what_was_refused_is_not(status: int) -> None:
    assert not is_passing(answered(status))


@pytest.mark.parametrize(
    "error",
    [ServiceRequestError("x"), ServiceResponseTimeoutError("x"), AzureError("x"), OSError()],
)
def test_a_connection_that_broke_is_worth_another_try(error: Exception) -> None:
    assert is_passing(error)


@pytest.mark.parametrize("error", [ClientAuthenticationError("x"), ValueError(), KeyError()])
def test_an_identity_that_is_missing_and_a_defect_are_not(error: Exception) -> None:
    assert not is_passing(error)


def test_what_is_being_deleted_can_be_made_again_later() -> None:
    """Tables say so in the text, containers in a header."""
    table = ResourceExistsError(
        response=Answer(409, '{"odata.error":{"code":"TableBeingDeleted"}}')
    )
    assert is_passing(table)
    assert is_passing(answered(409, x_ms_error_code="ContainerBeingDeleted"))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry_After": "3"}, 3.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"x_ms_retry_after_ms": "250"}, 0.25),
        ({"retry_after_ms": "250"}, 0.25),
        ({"Retry_After": "-3"}, 0.0),
        ({"Retry_After": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"Retry_After": "Wed, 21 Oct 2026 07:28:00 GMT", "retry_after_ms": "250"}, 0.25),
        ({}, None),
    ],
)
def test_how_long_to_wait_is_in_a_header(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_to_wait(answered(503, **headers)) == seconds
    assert asked_to_wait(OSError()) is None


def test_who_may_not_is_told_apart() -> None:
    assert is_forbidden(answered(401))
    assert is_forbidden(answered(403))
    assert is_forbidden(ClientAuthenticationError("no identity"))
    assert not is_forbidden(answered(404))
    assert not is_forbidden(OSError())


def test_what_is_told_is_the_code_and_nothing_that_was_said() -> None:
    assert told(answered(503, "hunter2", x_ms_error_code="ServerBusy")) == "503 ServerBusy"
    assert told(answered(503, "hunter2")) == "503 Some Reason"
    assert code_of(answered(400, x_ms_error_code="InvalidInput")) == "InvalidInput"
    broken = ServiceRequestError("hunter2")
    assert told(broken) == "ServiceRequestError"
    broken.__cause__ = ConnectionResetError("hunter2")
    assert told(broken) == "ServiceRequestError (ConnectionResetError)"
