"""What the contract leaves open is no fault of a service."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contract_tests.verdicts import Verdict
from tests.conform.broken_services.directives import Directive
from tests.conform.broken_services.in_process import judged
from tests.conform.broken_services.replies import Answer, Replies
from tests.conform.broken_services.sound import Service
from tests.conform.broken_services.wording import FAILED_RETRY, Body, Outcome, encoded


class SpellsRetryTheOldWay(Service):
    """A failure that is worth another try is FAILED, made precise by its class."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        return {**body, "status": "FAILED"} if outcome.status == FAILED_RETRY else body


class SpellsRetryTheOldWayWithoutAClass(SpellsRetryTheOldWay):
    """FAILED without a class is worth another try."""

    def result(self, directive: Directive, outcome: Outcome) -> Body:
        body = super().result(directive, outcome)
        body.pop("failure_class", None)
        return body


class StampsWithZeroOffset(Service):
    """UTC is written as +00:00."""

    def timestamp(self) -> str:
        return datetime.now(UTC).isoformat()


class _WithoutTraceInTheBody(Replies):
    given = ""

    def headers(self, _raw: bytes) -> dict[str, str]:
        return {"traceparent": self.given}

    async def send(self, directive: Directive, type: str, raw: bytes) -> Answer:
        self.given = directive.traceparent
        body = json.loads(raw)
        del body["traceparent"]
        return await super().send(directive, type, encoded(body))


class TracesInHeadersAlone(Service):
    """The trace is a header or a property, and not said again in the body."""

    replies_type = _WithoutTraceInTheBody


class NamesFilesInWords(Service):
    """The name of an artifact has to be escaped in its address."""

    def write(self, directive: Directive, folder: Path, text: str) -> dict[str, Any]:
        written = folder / "Grüße & mehr"
        return super().write(directive, written, text)


class PublishesWithAFence(Service):
    """The last step writes to `output_ref`, and its fence beside it."""

    def write(self, directive: Directive, folder: Path, text: str) -> dict[str, Any]:
        place = self.root / "published" / directive.job_id
        place.mkdir(parents=True, exist_ok=True)
        (place / "output").write_text(text)
        (place / ".lucius-output").write_text("1")
        return super().write(directive, folder, text)


class GivesItsWorkBackAtTheEnd(Service):
    """What is being worked on at SIGTERM is left to the next instance, with its message."""

    async def drain(self) -> None:
        for task in self.tasks:
            task.cancel()
        await super().drain()


@pytest.mark.parametrize(
    ("service", "only"),
    [
        (GivesItsWorkBackAtTheEnd, ("LC-18/drains",)),
        (SpellsRetryTheOldWay, ("LC-14/storage-refuses",)),
        (SpellsRetryTheOldWayWithoutAClass, ("LC-14/storage-refuses",)),
        (StampsWithZeroOffset, ("LC-02",)),
        (TracesInHeadersAlone, ("LC-20",)),
        (NamesFilesInWords, ("LC-10",)),
        (PublishesWithAFence, ("LC-11",)),
    ],
)
async def test_a_service_passes_that_does_what_is_left_open(
    service: type[Service], only: Sequence[str], tmp_path: Path
) -> None:
    outcomes = await judged(service, only, tmp_path)
    assert [(o.case_id, o.reason) for o in outcomes if o.verdict is not Verdict.PASS] == []
