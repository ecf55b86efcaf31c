"""A service cannot tell from a directive who has sent it."""

import json
import re
from typing import Any

import pytest

from lucius_contract.ids import message_id
from lucius_contract.messages import Directive
from lucius_contract.routing import lane_of
from lucius_orchestrator.domain.aggregate import ReplyVia
from tests.mock.parity.target import ACK_TIMEOUT, LEASE, STEP_TYPE, TENANT, Target

pytestmark = pytest.mark.asyncio(loop_scope="module")
MEMBERS = {
    "type",
    "schema_version",
    "jobId",
    "stepId",
    "tenant_id",
    "attempt_no",
    "lease_id",
    "protocol_id",
    "step_type",
    "input_ref",
    "workspace_ref",
    "output_ref",
    "payload",
    "mode",
    "lane",
    "routing_key_used",
    "correlation_id",
    "traceparent",
    "lease_expires_at",
    "lease_seconds",
    "heartbeat_seconds",
    "prior_artifacts",
}
OVER_HTTP = {"callback_urls", "callback_token"}
SAME: dict[str, Any] = {
    "type": "DIRECTIVE",
    "schema_version": "1",
    "stepId": "step_01",
    "tenant_id": TENANT,
    "attempt_no": 1,
    "step_type": STEP_TYPE,
    "payload": {},
    "mode": "DEFAULT",
    "lane": lane_of(TENANT),
    "routing_key_used": TENANT,
    "lease_seconds": 60,
    "heartbeat_seconds": 20,
    "prior_artifacts": {},
}
FORMS = {
    "jobId": r"job_[0-9a-f]{32}",
    "lease_id": r"[0-9a-f]{32}",
    "traceparent": r"00-[0-9a-f]{32}-[0-9a-f]{16}-01",
    "lease_expires_at": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{6})?Z",
}


@pytest.mark.parametrize("via", ReplyVia)
async def test_a_directive_has_the_members_of_the_contract(target: Target, via: ReplyVia) -> None:
    given = await target.submit(via)
    written = json.loads(target.message(given.job_id).raw)
    assert written.keys() == MEMBERS | (OVER_HTTP if via is ReplyVia.HTTP else set())
    assert {name: written[name] for name in SAME} == SAME
    for name, form in FORMS.items():
        assert re.fullmatch(form, written[name]), f"{name}: {written[name]}"


async def test_the_lease_of_a_directive_covers_the_way_and_the_work(target: Target) -> None:
    given = await target.submit()
    left = (given.lease_expires_at - target.now()).total_seconds()
    assert left == pytest.approx((ACK_TIMEOUT + LEASE).total_seconds(), abs=5)
    assert target.message(given.job_id).lives == pytest.approx(left, abs=5)


async def test_addresses_are_three_of_one_place(target: Target) -> None:
    urls = (await target.submit()).callback_urls
    assert urls is not None
    for name in ("ack", "result", "heartbeat"):
        url = getattr(urls, name)
        assert re.fullmatch(rf"http://127\.0\.0\.1:\d+/v1/callbacks/{name}", url)


def check_message(target: Target, given: Directive) -> None:
    message = target.message(given.job_id)
    identity = given.job_id, given.step_id, given.attempt_no, given.lease_id, "DIRECTIVE"
    assert message.message_id == message_id(*identity)
    assert message.partition_key == TENANT
    assert message.properties == {
        "type": "DIRECTIVE",
        "step_type": STEP_TYPE,
        "service": "ocr",
        "mode": "DEFAULT",
        "lane": given.lane,
        "tenant_id": TENANT,
        "jobId": given.job_id,
        "stepId": given.step_id,
        "attempt_no": given.attempt_no,
        "traceparent": given.traceparent,
    }


async def test_the_message_around_a_directive_is_the_same(target: Target) -> None:
    check_message(target, await target.submit())


async def test_the_next_attempt_differs_in_number_lease_and_token_alone(target: Target) -> None:
    first = await target.submit()
    await target.expire(first.job_id)
    second = await target.next_attempt(first.job_id)
    assert second is not None
    check_message(target, second)
    before, after = first.model_dump(), second.model_dump()
    differing = {name for name in before if before[name] != after[name]}
    assert differing - {"lease_expires_at"} == {"attempt_no", "lease_id", "callback_token"}
    assert second.attempt_no == 2
