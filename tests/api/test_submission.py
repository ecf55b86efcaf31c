"""Submitting over HTTP."""

from typing import Any

import pytest

from lucius_contract.canonical import idempotency_hash
from lucius_orchestrator.ports.registry import GlobalConfig, TenantConfig
from tests.api.stage import FOREIGN, Stage, code, pointers
from tests.engine.plane import OCR, TENANT, TRACE, configured
from tests.ledger.view import job_ids

KEY = {"Idempotency-Key": "k-1"}


async def created(stage: Stage) -> int:
    return len(await job_ids(stage.plane.ledger))


@pytest.mark.parametrize("path", ["/v1/orchestrate", "/v1/commands"])
async def test_a_request_is_accepted_once_its_job_is_committed(stage: Stage, path: str) -> None:
    answer = await stage.post(path, json=OCR)
    body = answer.json()
    job_id, here = body["jobId"], f"/v1/jobs/{body['jobId']}"
    assert answer.status_code == 202
    assert answer.headers["location"] == here
    assert body == {
        "jobId": job_id,
        "state": stage.plane.new_state,
        "status": "QUEUED",
        "duplicate": False,
        "links": {
            "self": here,
            "steps": f"{here}/steps",
            "events": f"{here}/events",
            "stream": f"{here}/stream",
        },
    }
    assert (await stage.plane.job(job_id)).state == stage.plane.new_state


async def test_the_same_request_again_is_its_duplicate(stage: Stage) -> None:
    first, again = await stage.submit(), await stage.submit()
    assert again.status_code == 202
    assert again.json() == {**first.json(), "duplicate": True}
    assert await created(stage) == 1


async def test_the_header_is_a_key_like_the_member(stage: Stage) -> None:
    named = await stage.submit(idempotency_key="k-1")
    for members in ({}, {"idempotency_key": "k-1"}):
        again = await stage.post("/v1/orchestrate", json=OCR | members, headers=KEY)
        assert again.json() == {**named.json(), "duplicate": True}
    job = await stage.plane.job(named.json()["jobId"])
    assert (job.idempotency_key, job.idempotency_hash) == ("k-1", idempotency_hash(OCR))


async def test_two_keys_that_differ_are_refused(stage: Stage) -> None:
    answer = await stage.post("/v1/orchestrate", json=OCR | {"idempotency_key": "k-2"}, headers=KEY)
    assert code(answer) == (400, "ENVELOPE_INVALID")
    assert pointers(answer) == ["/idempotency_key", "/header/Idempotency-Key"]
    assert await created(stage) == 0


@pytest.mark.parametrize("key", [b"", b" ", b"x" * 257, b"\xff"])
async def test_a_header_that_is_no_key_is_refused(stage: Stage, key: bytes) -> None:
    answer = await stage.post("/v1/orchestrate", json=OCR, headers={b"Idempotency-Key": key})
    assert code(answer) == (400, "ENVELOPE_INVALID")
    assert pointers(answer) == ["/header/Idempotency-Key"]
    assert await created(stage) == 0


async def test_a_key_with_other_content_is_a_conflict(stage: Stage) -> None:
    await stage.submit(idempotency_key="k-1")
    answer = await stage.submit(idempotency_key="k-1", payload={"dpi": 72})
    assert code(answer) == (409, "IDEMPOTENCY_CONFLICT")
    assert await created(stage) == 1


INVALID: dict[str, tuple[dict[str, Any], int, str, list[str]]] = {
    "member missing": ({"input_ref": None}, 400, "ENVELOPE_INVALID", ["/input_ref"]),
    "version": ({"schema_version": "2"}, 400, "SCHEMA_VERSION_UNSUPPORTED", ["/schema_version"]),
    "type": ({"request_type": "OCT"}, 422, "REQUEST_TYPE_UNKNOWN", ["/request_type"]),
    "payload": ({"payload": {"dpi": 1}}, 422, "PAYLOAD_INVALID", ["/payload/dpi"]),
    "ref": ({"input_ref": {"uri": "a b"}}, 422, "REF_INVALID", ["/input_ref/uri"]),
    "policy": ({"input_ref": {"uri": "ftp://a/b"}}, 403, "REF_FORBIDDEN", ["/input_ref/uri"]),
    "webhook": (
        {"callback_urls": ["https://allowed.example/", "https://other.example/"]},
        403,
        "REF_FORBIDDEN",
        ["/callback_urls/1"],
    ),
    "document": ({"mode": "BURST"}, 422, "DOC_ID_REQUIRED", ["/doc_id"]),
    "tenant": ({"tenant_id": FOREIGN}, 403, "FORBIDDEN", ["/tenant_id"]),
    "large payload": ({"payload": {"x": "y" * 2**17}}, 413, "TOO_LARGE", ["/payload"]),
}


@pytest.mark.parametrize(
    ("members", "status", "name", "where"), INVALID.values(), ids=list(INVALID)
)
async def test_an_invalid_request_creates_nothing(
    stage: Stage, members: dict[str, Any], status: int, name: str, where: list[str]
) -> None:
    answer = await stage.submit(**members)
    assert code(answer) == (status, name)
    assert pointers(answer) == where
    assert await created(stage) == 0


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b'{"a": NaN}', b"[" * 10_000])
async def test_what_is_not_a_json_object_is_refused(stage: Stage, raw: bytes) -> None:
    answer = await stage.post("/v1/orchestrate", content=raw)
    assert code(answer) == (400, "ENVELOPE_INVALID")


async def test_a_mode_that_the_tenant_may_not_use_is_refused(stage: Stage) -> None:
    stage.registry.current = configured(tenant=TenantConfig(allowed_modes=frozenset()))
    assert code(await stage.submit()) == (403, "MODE_FORBIDDEN")


@pytest.mark.parametrize(
    ("limits", "name"),
    [
        (configured(tenant=TenantConfig(max_inflight=1)), "TENANT_SATURATED"),
        (configured(defaults=GlobalConfig(max_inflight=1)), "GLOBAL_SATURATED"),
    ],
)
async def test_a_full_limit_says_when_to_come_again(stage: Stage, limits: Any, name: str) -> None:
    stage.registry.current = limits
    await stage.submitted()
    answer = await stage.submit(payload={"dpi": 72})
    assert code(answer) == (429, name)
    assert answer.headers["retry-after"] == "5"
    assert (await stage.submit()).json()["duplicate"] is True


async def test_who_may_only_read_may_not_submit(stage: Stage) -> None:
    answer = await stage.submit("reader")
    assert code(answer) == (403, "FORBIDDEN")
    assert await created(stage) == 0


async def test_headers_name_correlation_and_trace_where_the_request_does_not(stage: Stage) -> None:
    headers = {"X-Correlation-Id": "from-header", "traceparent": TRACE}
    answer = await stage.post("/v1/orchestrate", json=OCR, headers=headers)
    job = await stage.plane.job(answer.json()["jobId"])
    assert (job.correlation_id, job.traceparent) == ("from-header", TRACE)
    assert answer.headers["x-correlation-id"] == "from-header"


async def test_the_request_comes_before_its_headers(stage: Stage) -> None:
    trace = TRACE.replace("4bf9", "0bf9")
    members = {"correlation_id": "from-body", "traceparent": trace}
    headers = {"X-Correlation-Id": "from-header", "traceparent": TRACE}
    answer = await stage.post("/v1/orchestrate", json=OCR | members, headers=headers)
    job = await stage.plane.job(answer.json()["jobId"])
    assert (job.correlation_id, job.traceparent) == ("from-body", trace)
    assert answer.headers["x-correlation-id"] == "from-header"


@pytest.mark.parametrize(
    "trace",
    ["", "00", TRACE.upper(), TRACE.replace("00-", "ff-", 1), f"00-{'0' * 32}-{'1' * 16}-01"],
)
async def test_a_trace_that_is_none_begins_anew(stage: Stage, trace: str) -> None:
    answer = await stage.post("/v1/orchestrate", json=OCR, headers={"traceparent": trace})
    made = (await stage.plane.job(answer.json()["jobId"])).traceparent
    assert made != trace
    assert [len(part) for part in made.split("-")] == [2, 32, 16, 2]


async def test_a_job_belongs_to_the_tenant_that_the_request_names(stage: Stage) -> None:
    job_id = await stage.submitted("both")
    assert (await stage.plane.job(job_id)).tenant_id == TENANT
