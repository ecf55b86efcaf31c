"""Replies that are refused before they are judged: by both with the same words, and nothing
moves."""

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from lucius_contract.messages import REPLY_LIMIT, Directive
from tests.mock.parity.service import (
    FORBIDDEN,
    NOT_FOUND,
    TOO_LARGE,
    UNAUTHENTICATED,
    Said,
    Service,
    applied,
    duplicate,
    invalid,
    reply,
    url_of,
)
from tests.mock.parity.target import Target

pytestmark = pytest.mark.asyncio(loop_scope="module")
UNSUPPORTED = Said(400, "SCHEMA_VERSION_UNSUPPORTED", pointers=("/schema_version",))


@pytest_asyncio.fixture(loop_scope="module")
async def given(target: Target) -> AsyncIterator[Directive]:
    """A directive whose job is where it was when the test is over."""
    given = await target.submit()
    before = await target.seen(given.job_id)
    yield given
    after = await target.seen(given.job_id)
    assert after.states == before.states
    assert after.attempts == before.attempts


async def post(service: Service, given: Directive, raw: bytes, type: str = "ACK") -> Said:
    return await service.post(url_of(given, type), raw, given.callback_token)


def written(given: Directive, type: str = "ACK", **members: Any) -> bytes:
    return json.dumps(reply(given, type, **members)).encode()


@pytest.mark.parametrize("type", ["ACK", "HEARTBEAT", "RESULT"])
async def test_a_reply_in_the_name_of_another_tenant_is_refused_and_recorded(
    target: Target, service: Service, given: Directive, type: str
) -> None:
    assert await service.send(given, type, tenant_id="globex") == NOT_FOUND
    assert (await target.seen(given.job_id)).refusals == 1


@pytest.mark.parametrize(
    "change",
    [
        {"jobId": "job_" + "0" * 32},
        {"stepId": "step_02"},
        {"attempt_no": 2},
        {"lease_id": "0" * 32},
    ],
    ids=lambda change: next(iter(change)),
)
async def test_a_token_is_good_for_its_own_attempt_alone(
    service: Service, given: Directive, change: dict[str, Any]
) -> None:
    assert await service.send(given, "RESULT", **change) == FORBIDDEN


async def test_the_token_of_another_job_does_not_fit(
    target: Target, service: Service, given: Directive
) -> None:
    other = await target.submit()
    raw = written(given)
    said = await service.post(url_of(other), raw, other.callback_token)
    assert said == FORBIDDEN


async def test_the_token_of_an_earlier_attempt_does_not_fit(
    target: Target, service: Service
) -> None:
    first = await target.submit()
    await target.expire(first.job_id)
    second = await target.next_attempt(first.job_id)
    assert second is not None
    said = await service.post(url_of(second), written(second), first.callback_token)
    assert said == FORBIDDEN
    assert (await target.seen(first.job_id)).states == ("DISPATCHING", "AWAITING_ACK")


@pytest.mark.parametrize("token", [None, "", "nonsense", "Bearer x", "a.b.c.d"])
async def test_without_a_token_of_ours_nobody_replies(
    service: Service, given: Directive, token: str | None
) -> None:
    url = url_of(given)
    assert await service.post(url, written(given), token) == UNAUTHENTICATED


async def test_a_token_counts_only_as_bearer(service: Service, given: Directive) -> None:
    headers = {"Authorization": f"Basic {given.callback_token}"}
    said = await service.post(url_of(given), written(given), None, headers)
    assert said == UNAUTHENTICATED


async def test_who_is_not_known_is_told_how_to_be(given: Directive) -> None:
    async with (
        aiohttp.ClientSession() as http,
        http.post(url_of(given), data=written(given)) as answer,
    ):
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"] == "Bearer"


async def test_an_answer_has_the_correlation_id_of_its_request(given: Directive) -> None:
    headers = {"X-Correlation-Id": "c-17"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(url_of(given), data=b"{}") as answer,
    ):
        assert answer.headers["X-Correlation-Id"] == "c-17"
        assert (await answer.json(content_type=None))["correlation_id"] == "c-17"


UNREADABLE = {
    "nothing": b"",
    "half an object": b'{"type": "ACK"',
    "an array": b"[]",
    "a string": b'"ACK"',
    "no UTF-8": b'{"type": "ACK\xff"}',
    "not a number": b'{"type": "ACK", "x": NaN}',
    "very deep": b"[" * 5_000 + b"]" * 5_000,
    "a deep member": b'{"type": "ACK", "x": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
}


@pytest.mark.parametrize("what", UNREADABLE)
async def test_what_is_not_a_json_object_is_refused(
    service: Service, given: Directive, what: str
) -> None:
    assert await post(service, given, UNREADABLE[what]) == invalid("")


@pytest.mark.parametrize("type", [None, "DIRECTIVE", "NACK", 7, ["ACK"]])
async def test_what_is_not_a_reply_is_refused(
    service: Service, given: Directive, type: object
) -> None:
    raw = json.dumps(reply(given, "ACK") | {"type": type}).encode()
    assert await post(service, given, raw) == invalid("/type")


REQUIRED = ("jobId", "stepId", "tenant_id", "attempt_no", "lease_id", "timestamp")


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("how", ["missing", "null"])
async def test_a_missing_member_is_named(
    service: Service, given: Directive, name: str, how: str
) -> None:
    for type in ("ACK", "HEARTBEAT", "RESULT"):
        members = reply(given, type)
        members[name] = None
        if how == "missing":
            del members[name]
        assert await post(service, given, json.dumps(members).encode(), type) == invalid(f"/{name}")


@pytest.mark.parametrize("status", [None, "ACKED", "DONE", "succeeded"])
async def test_a_result_says_how_the_attempt_ended(
    service: Service, given: Directive, status: str | None
) -> None:
    assert await service.result(given, status=status) == invalid("/status")


@pytest.mark.parametrize(
    ("change", "pointer"),
    [
        ({"attempt_no": "1"}, "/attempt_no"),
        ({"attempt_no": 0}, "/attempt_no"),
        ({"attempt_no": True}, "/attempt_no"),
        ({"attempt_no": 1.5}, "/attempt_no"),
        ({"jobId": 7}, "/jobId"),
        ({"lease_id": ""}, "/lease_id"),
        ({"lease_id": "0" * 129}, "/lease_id"),
        ({"timestamp": "2026-01-27T10:00:00"}, "/timestamp"),
        ({"timestamp": "yesterday"}, "/timestamp"),
        ({"timestamp": 1769508000}, "/timestamp"),
        ({"artifacts": {}}, "/artifacts"),
        (
            {"artifacts": [{"name": "a", "uri": "az://a", "sha256": "x", "size": 1}]},
            "/artifacts/0/sha256",
        ),
        ({"error": "it broke"}, "/error"),
        ({"error": {"message": "it broke"}}, "/error/code"),
        ({"failure_class": "SOMETIMES"}, "/failure_class"),
        ({"schema_version": 1}, "/schema_version"),
    ],
)
async def test_a_member_of_another_form_is_named(
    service: Service, given: Directive, change: dict[str, Any], pointer: str
) -> None:
    assert await service.result(given, **change) == invalid(pointer)


async def test_all_that_is_wrong_is_named_at_once(service: Service, given: Directive) -> None:
    said = await service.result(given, attempt_no="x", timestamp="x", status="x")
    assert sorted(said.pointers) == ["/attempt_no", "/status", "/timestamp"]


@pytest.mark.parametrize("address", ["ACK", "HEARTBEAT", "RESULT"])
async def test_an_address_takes_one_type_of_reply(
    service: Service, given: Directive, address: str
) -> None:
    for type in {"ACK", "HEARTBEAT", "RESULT"} - {address}:
        assert await post(service, given, written(given, type), address) == invalid("/type")


@pytest.mark.parametrize("version", ["2", "2.0", "0", "10"])
async def test_another_major_version_is_not_read(
    service: Service, given: Directive, version: str
) -> None:
    assert await service.send(given, "ACK", schema_version=version) == UNSUPPORTED


@pytest.mark.parametrize("version", ["one", "1.", "", "v1"])
async def test_what_is_no_version_is_refused(
    service: Service, given: Directive, version: str
) -> None:
    assert await service.send(given, "ACK", schema_version=version) == invalid("/schema_version")


async def test_a_result_without_a_canonical_form_is_refused(
    service: Service, given: Directive
) -> None:
    assert await service.result(given, x_pages=2**53) == invalid("/x_pages")


@pytest.mark.parametrize("type", ["ACK", "HEARTBEAT", "RESULT"])
async def test_a_reply_over_its_limit_is_refused(
    service: Service, given: Directive, type: str
) -> None:
    assert await service.send(given, type, x_note="x" * REPLY_LIMIT) == TOO_LARGE


async def test_a_reply_at_its_limit_is_read(target: Target, service: Service) -> None:
    given = await target.submit()
    raw = written(given, x_note="")
    padded = written(given, x_note="x" * (REPLY_LIMIT - len(raw)))
    assert len(padded) == REPLY_LIMIT
    assert await post(service, given, padded) == applied()


async def test_what_cannot_be_read_is_refused_before_who_sends_it(
    service: Service, given: Directive
) -> None:
    url = url_of(given)
    assert await service.post(url, b"{", None) == invalid("")
    assert await service.post(url, b" " * (REPLY_LIMIT + 1), None) == TOO_LARGE
    assert await service.post(url, written(given, "RESULT"), None) == invalid("/type")


@pytest.mark.parametrize("type", ["ACK", "HEARTBEAT", "RESULT"])
async def test_unknown_members_and_minor_versions_are_tolerated(
    target: Target, service: Service, type: str
) -> None:
    given = await target.submit()
    new = {"schema_version": "1.7", "x_new": {"deep": [1, None, {"x": "y"}]}, "x_null": None}
    assert await service.send(given, type, **new) == applied()
    if type == "RESULT":
        assert await service.send(given, type, **new) == duplicate()


async def test_the_media_type_of_a_reply_does_not_matter(target: Target, service: Service) -> None:
    given = await target.submit()
    headers = {"Content-Type": "text/plain"}
    url, token = url_of(given), given.callback_token
    assert await service.post(url, written(given), token, headers) == applied()


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_replies_are_posted(given: Directive, method: str) -> None:
    async with (
        aiohttp.ClientSession() as http,
        http.request(method, url_of(given)) as answer,
    ):
        assert answer.status == 405
        assert answer.headers["Allow"] == "POST"


async def test_there_is_no_other_address(given: Directive) -> None:
    url = url_of(given).replace("/ack", "/nack")
    async with aiohttp.ClientSession() as http, http.post(url, data=written(given)) as answer:
        assert answer.status == 404
