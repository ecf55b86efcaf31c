"""What an operator sees is what the tables promise."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from lucius_outbox import (
    Claimed,
    Dispatcher,
    DispatchSettings,
    RetryPolicy,
    Undeliverable,
    one_by_one,
)
from lucius_outbox.prometheus import PrometheusMetrics
from lucius_outbox.telemetry import EVENTS, METRICS
from tests.outbox.backends import Backend, Clock, PostgresBackend, commit, message
from tests.outbox.test_dispatcher import QUICK, _logged, until
from tests.runner.deadlines import DEADLINE

STANDARD = set(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


async def test_metrics_tell_what_happened(backend: Backend, clock: Clock) -> None:
    registry = CollectorRegistry()
    store = backend.store(clock, policy=RetryPolicy(max_attempts=1))
    await commit(backend, *map(message, range(3)), message(9, topic="other"))
    crashed = backend.store(clock)
    await crashed.claim_batch(1, timedelta(seconds=1))
    clock.advance(seconds=5)

    async def publish(claimed: Claimed) -> None:
        if claimed.payload == {"n": 2}:
            raise Undeliverable("no")

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(name, {"namespace": "tests", **labels})

    async def settled() -> bool:
        return value("lucius_outbox_rows", topic="t", status="dead") == 1.0

    settings = DispatchSettings(housekeeping_interval=timedelta(milliseconds=10))
    metrics = PrometheusMetrics(registry)
    async with Dispatcher(store, one_by_one(publish), settings, metrics):
        await until(settled)

    assert value("lucius_outbox_claimed_total", topic="t") == 3
    assert value("lucius_outbox_claimed_total", topic="other") == 1
    assert value("lucius_outbox_reclaimed_total", topic="t") == 1
    assert value("lucius_outbox_delivered_total", topic="t") == 2
    assert value("lucius_outbox_failed_total", topic="t") == 1
    assert value("lucius_outbox_dead_total", topic="t") == 1
    assert value("lucius_outbox_lag_seconds_count", topic="t") == 2
    assert value("lucius_outbox_publish_seconds_count") == 1
    assert value("lucius_outbox_rows", topic="t", status="pending") == 0
    assert value("lucius_outbox_oldest_seconds", topic="t") == 0
    text = generate_latest(registry).decode()
    for metric in METRICS:
        assert f"# HELP {metric.name.removesuffix('_total')}" in text


async def test_a_topic_that_has_no_rows_any_more_counts_zero(backend: Backend) -> None:
    registry = CollectorRegistry()
    await commit(backend, message(1))
    go_on = asyncio.Event()

    async def publish(claims: Sequence[Claimed]) -> None:
        await go_on.wait()

    async def gauge(expected: float) -> bool:
        labels = {"namespace": "tests", "topic": "t", "status": "processing"}
        return registry.get_sample_value("lucius_outbox_rows", labels) == expected

    settings = DispatchSettings(housekeeping_interval=timedelta(milliseconds=10))
    async with Dispatcher(backend.store(), publish, settings, PrometheusMetrics(registry)):
        await until(lambda: gauge(1))
        go_on.set()
        await until(lambda: gauge(0))


async def test_every_event_has_a_name_and_fields_of_the_table(
    backend: Backend, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "lucius_outbox")
    async with backend.transaction() as transaction:
        await backend.execute(transaction, "CREATE TABLE graves (id text PRIMARY KEY)")
    store = backend.store(clock, policy=RetryPolicy(max_attempts=1), on_dead_insert="graves")
    await commit(backend, *map(message, range(4)))
    crashed = backend.store(clock)
    claims = await crashed.claim_batch(2, timedelta(seconds=1))
    async with backend.transaction() as transaction:
        await backend.execute(transaction, f"INSERT INTO graves VALUES ('{claims[0].id}')")
    clock.advance(seconds=5)

    async def publish(claimed: Claimed) -> None:
        if claimed.payload in ({"n": 0}, {"n": 1}):
            raise Undeliverable("password=S3cr3t")

    async with Dispatcher(store, one_by_one(publish), QUICK):
        await until(lambda: _logged(caplog, "outbox.dead"))
        await until(lambda: _logged(caplog, "outbox.on_dead_failed"))
        await until(lambda: _logged(caplog, "outbox.delivered"))
    await store.replay([claims[1].id], by="ada", reason="mended")

    fields = {event.name: set(event.fields) for event in EVENTS}
    levels = {event.name: event.level for event in EVENTS}
    records = [record for record in caplog.records if record.name == "lucius_outbox"]
    assert {record.getMessage() for record in records} >= {
        "outbox.started",
        "outbox.stopped",
        "outbox.delivered",
        "outbox.reclaimed",
        "outbox.failed",
        "outbox.dead",
        "outbox.on_dead_failed",
        "outbox.replayed",
    }
    for record in records:
        extra = set(vars(record)) - STANDARD - {"namespace", "worker_id"}
        assert extra == fields[record.getMessage()], record.getMessage()
        assert record.levelname == levels[record.getMessage()]
        assert record.namespace == "tests"  # type: ignore[attr-defined]
        assert "S3cr3t" not in str(vars(record))
        assert "'n'" not in str(vars(record)), "a payload was logged"


async def test_a_broken_connection_is_replaced_by_one_that_listens(
    postgres_backend: PostgresBackend, caplog: pytest.LogCaptureFixture
) -> None:
    store = postgres_backend.store()
    wakes = asyncio.Queue[None]()
    listening = asyncio.create_task(store.listen(lambda: wakes.put_nowait(None)))
    async with asyncio.timeout(DEADLINE):
        await wakes.get()  # it listens
        async with postgres_backend.transaction() as transaction:
            await transaction.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE query LIKE 'LISTEN %' AND pid <> pg_backend_pid()"
            )
        await wakes.get()  # it listens again
        assert await _logged(caplog, "outbox.listen_lost")
        await commit(postgres_backend, message(1), message(2, namespace="other"))
        await wakes.get()
    assert wakes.empty()
    listening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await listening
