"""A job that ends tells its addresses, in the very commit that ends it."""

import json
from typing import Any

import pytest

from lucius_contract.errors import ErrorCode
from lucius_orchestrator.adapters.ledger.outbox_rows import NAMESPACES
from lucius_orchestrator.domain.aggregate import Engine
from lucius_orchestrator.domain.decision import OutboxKind
from lucius_orchestrator.ports.ledger import Conflict
from lucius_orchestrator.ports.webhooks import NAMESPACE, host_of
from tests.ledger.jobs import Story
from tests.webhooks.stage import MANY, Stage, claims, enqueued

URL = "https://hooks.example/done?tenant=acme"


async def told(stage: Stage) -> list[dict[str, Any]]:
    return [json.loads(webhook.body) for webhook in await enqueued(stage)]


@pytest.mark.parametrize("engine", Engine)
async def test_a_success_is_told_with_all_that_a_client_asks_next(
    stage: Stage, engine: Engine
) -> None:
    created = await stage.world.create(callback_urls=(URL,), engine=engine)
    story = await created.succeeds(output_ref={"uri": "az://outbox/a.json"})
    job, (webhook,) = story.job, await enqueued(stage)
    assert webhook.url == URL
    assert json.loads(webhook.body) == {
        "event_id": webhook.event_id,
        "type": "job.succeeded",
        "jobId": job.job_id,
        "tenant_id": "acme",
        "state": "SUCCEEDED",
        "status": "SUCCEEDED",
        "final_output": "az://outbox/a.json",
        "error": None,
        "correlation_id": job.correlation_id,
        "occurred_at": stage.clock().isoformat().replace("+00:00", "Z"),
    }


async def test_a_success_that_published_nothing_says_so(stage: Stage) -> None:
    await (await stage.world.create(callback_urls=(URL,))).succeeds()
    (body,) = await told(stage)
    assert (body["type"], body["final_output"]) == ("job.succeeded", None)


async def test_a_failure_is_told_with_its_error(stage: Stage) -> None:
    await (await stage.world.create(callback_urls=(URL,))).fails()
    (body,) = await told(stage)
    assert (body["type"], body["state"]) == ("job.failed", "FAILED_FINAL")
    assert body["error"] == {"code": "ocr.BROKEN", "message": "it broke"}
    assert body["final_output"] is None


async def test_a_cancellation_is_told(stage: Stage) -> None:
    story = await stage.world.create(callback_urls=(URL,))
    claim = await stage.world.claim_one()
    await story.cancelled()
    await story.fails_for_now()
    await stage.backend.ledger.discard([claim])
    (body,) = await told(stage)
    assert (body["type"], body["state"], body["error"]) == ("job.cancelled", "CANCELLED", None)


async def test_an_end_that_also_settles_a_directive_is_told(stage: Stage) -> None:
    story = await stage.world.create(callback_urls=(URL,))
    claim = await stage.world.claim_one()
    await story.unpublishable(claim, ErrorCode.DIRECTIVE_TOO_LARGE)
    assert story.ended
    assert [body["type"] for body in await told(stage)] == ["job.failed"]


async def test_every_address_is_told_under_an_id_of_its_own(stage: Stage) -> None:
    urls = (URL, "https://other.example", URL)
    story = await (await stage.world.create(callback_urls=urls)).succeeds()
    webhooks = await enqueued(stage)
    assert sorted(webhook.url for webhook in webhooks) == sorted(urls)
    assert {webhook.event_id for webhook in webhooks} == {
        f"{story.job_id}.{story.job.seq}.{position}" for position in range(3)
    }


async def test_a_job_without_addresses_enqueues_nothing(stage: Stage) -> None:
    await (await stage.world.create()).succeeds()
    assert await enqueued(stage) == []


async def test_a_job_that_goes_on_enqueues_nothing(stage: Stage) -> None:
    story = await stage.world.create(steps=2, callback_urls=(URL,))
    await story.happens(story.result())
    assert not story.ended
    assert await enqueued(stage) == []


async def test_a_commit_that_conflicts_enqueues_nothing(stage: Stage) -> None:
    story = await stage.world.create(callback_urls=(URL,))
    late = Story(await stage.backend.reopen(), stage.clock, story.stored)
    await story.succeeds()
    with pytest.raises(Conflict):
        await late.fails()
    assert [body["type"] for body in await told(stage)] == ["job.succeeded"]


async def test_what_is_recorded_after_the_end_is_not_told(stage: Stage) -> None:
    story = await (await stage.world.create(callback_urls=(URL,))).succeeds()
    assert len(await enqueued(stage)) == 1
    decision = await story.happens(story.result())
    assert decision.writes
    async with stage.webhooks() as store:
        assert await claims(store) == []


@pytest.mark.parametrize(
    "url", ["https://", "https://[::1", "https://a\0b/\0", "https://ä.example/ü", "nonsense", ""]
)
async def test_no_address_keeps_a_job_from_ending(stage: Stage, url: str) -> None:
    story = await (await stage.world.create(callback_urls=(url,))).succeeds()
    assert story.ended
    assert len(await enqueued(stage)) == 1


async def test_a_message_with_a_nul_character_arrives_as_it_is(stage: Stage) -> None:
    story = await stage.world.create(callback_urls=(URL,))
    await story.fails(error_message="a\0b")
    (body,) = await told(stage)
    assert body["error"]["message"] == "a\0b"


async def test_an_end_is_told_though_its_job_was_removed_long_ago(stage: Stage) -> None:
    story = await (await stage.world.create(callback_urls=(URL,))).succeeds()
    ledger = stage.backend.ledger
    await ledger.remove(story.stored)
    stage.clock.advance(days=2)
    await ledger.prune(stage.clock.now, MANY)
    await ledger.repair(MANY)
    assert [body["jobId"] for body in await told(stage)] == [story.job_id]


def test_the_ledgers_prune_the_namespace_of_webhooks() -> None:
    assert NAMESPACES[OutboxKind.WEBHOOK] == NAMESPACE


@pytest.mark.parametrize(
    ("url", "host"),
    [
        (URL, "hooks.example"),
        ("https://HOOKS.example:8443", "hooks.example"),
        ("https://[2001:db8::1]:8443/x", "2001:db8::1"),
        ("https://user:secret@hooks.example/", "hooks.example"),
        ("https://[", "no host"),
        ("https://" + "a" * 300, "no host"),
    ],
)
def test_only_the_host_of_an_address_is_named(url: str, host: str) -> None:
    assert host_of(url) == host
