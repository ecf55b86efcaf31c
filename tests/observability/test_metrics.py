"""The registry has what the tables promise, and a ledger that is away leaves no old numbers."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lucius_artifacts import telemetry as artifacts
from lucius_artifacts.catalogue.memory import MemoryCatalogue
from lucius_artifacts.model import Blob
from lucius_artifacts.states import BlobState
from lucius_contract.routing import LANES, lane_of
from lucius_orchestrator.bootstrap import running
from lucius_orchestrator.engine import telemetry as engine
from lucius_orchestrator.engine.backlogs import Backlogs
from lucius_orchestrator.engine.services import Services
from lucius_orchestrator.observability.gauges import GaugeRefresher
from lucius_orchestrator.observability.metrics import BUCKETS, PrometheusMetrics
from lucius_orchestrator.observability.tables import (
    BACKLOG,
    EVENTS,
    HTTP_METRICS,
    INFLIGHT,
    INFLIGHT_JOBS,
    LEDGER_GAUGES,
    LEDGER_UP,
    METRICS,
    SERVICE_ABSENT,
    SERVICE_GAUGES,
    SERVICE_HEARD,
    SERVICE_OLDEST,
    SERVICE_UNACKNOWLEDGED,
    SERVICE_WAITING,
    SERVICE_WINDOW,
    SERVICE_WORKING,
)
from lucius_orchestrator.ports.ledger import Ledger, LedgerUnavailable
from lucius_orchestrator.sweepers.ack_timeout import AckTimeout
from lucius_outbox import telemetry as outbox
from lucius_outbox.telemetry import Kind, MetricInfo
from tests.engine.plane import SHIPPED, TENANT, Plane, request
from tests.runner.deadlines import DEADLINE

TOLD = (*outbox.METRICS, *engine.METRICS, *HTTP_METRICS, *artifacts.COUNTERS)
READ = (*LEDGER_GAUGES, *SERVICE_GAUGES, *artifacts.GAUGES)
NEVER = timedelta(hours=1)


class Seconds:
    """A clock that tests move."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def tell(metrics: PrometheusMetrics, info: MetricInfo) -> None:
    labels = dict.fromkeys(info.labels, "x")
    if info.kind is Kind.COUNTER:
        metrics.increment(info.name, 2, **labels)
    elif info.kind is Kind.GAUGE:
        metrics.set(info.name, 2, **labels)
    else:
        metrics.observe(info.name, [0.5, 1.5], **labels)


def samples(metrics: PrometheusMetrics, name: str) -> dict[tuple[str, ...], float]:
    """Values by labels, as a scrape sees them."""
    families = text_string_to_metric_families(metrics.render().decode())
    found = [sample for family in families for sample in family.samples if sample.name == name]
    return {tuple(sample.labels.values()): sample.value for sample in found}


@pytest.mark.parametrize("info", TOLD, ids=lambda info: info.name)
def test_every_metric_of_the_tables_exists_with_its_labels(info: MetricInfo) -> None:
    metrics = PrometheusMetrics()
    tell(metrics, info)
    name = info.name + ("_sum" if info.kind is Kind.HISTOGRAM else "")
    labels = dict.fromkeys(info.labels, "x")
    assert metrics.registry.get_sample_value(name, labels) == 2


@pytest.mark.parametrize("info", [*TOLD, *READ], ids=lambda info: info.name)
def test_every_metric_of_the_tables_is_described_in_a_scrape(info: MetricInfo) -> None:
    text = PrometheusMetrics().render().decode()
    assert f"# HELP {info.name} {info.meaning}" in text
    assert f"# TYPE {info.name} {info.kind}" in text


def test_no_metric_is_in_two_tables() -> None:
    ours = (*outbox.METRICS, *engine.METRICS, *METRICS, *artifacts.COUNTERS, *artifacts.GAUGES)
    names = [info.name for info in ours]
    assert len(names) == len(set(names))


def test_every_histogram_of_ours_has_buckets_of_its_own() -> None:
    ours = (*engine.METRICS, *METRICS)
    assert {info.name for info in ours if info.kind is Kind.HISTOGRAM} == BUCKETS.keys()
    assert all(list(buckets) == sorted(set(buckets)) for buckets in BUCKETS.values())


def test_the_order_of_labels_does_not_matter() -> None:
    metrics = PrometheusMetrics()
    metrics.increment(engine.REPLIES, 1, type="ACK", verdict="APPLIED")
    metrics.increment(engine.REPLIES, 1, verdict="APPLIED", type="ACK")
    assert samples(metrics, engine.REPLIES) == {("ACK", "APPLIED"): 2}


@pytest.mark.parametrize("labels", [{"kind": "x"}, {"state": "x", "more": "y"}])
def test_labels_that_the_table_does_not_name_are_refused(labels: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="label"):
        PrometheusMetrics().increment(engine.FINISHED, 1, **labels)


def test_two_of_them_share_nothing() -> None:
    one, other = PrometheusMetrics(), PrometheusMetrics()
    one.increment(engine.SUBMITTED, 1)
    assert samples(other, engine.SUBMITTED) == {(): 0}


def test_what_the_process_uses_is_shown() -> None:
    assert "process_open_fds" in PrometheusMetrics().render().decode()


async def test_an_engine_fills_them(plane: Plane) -> None:
    metrics = PrometheusMetrics()
    plane.engine.telemetry = engine.Telemetry(metrics)
    await plane.succeeded()
    assert samples(metrics, engine.SUBMITTED) == {(): 1}
    assert samples(metrics, engine.FINISHED) == {("SUCCEEDED",): 1}
    assert samples(metrics, engine.DISPATCH_LAG + "_count") == {(f"{lane_of(TENANT)}",): 1}


async def test_jobs_in_flight_are_read_from_the_ledger(plane: Plane) -> None:
    metrics = PrometheusMetrics()
    await plane.submit()
    await plane.submit(request(mode="BURST", doc_id="d", idempotency_key="k"))
    await metrics.refresh(plane.ledger)
    assert samples(metrics, INFLIGHT) == {("DEFAULT",): 1, ("BURST",): 1}
    assert samples(metrics, INFLIGHT_JOBS) == {(): 2}
    assert samples(metrics, LEDGER_UP) == {(): 1}


def test_before_the_first_reading_nothing_is_said_of_the_ledger() -> None:
    metrics = PrometheusMetrics()
    for info in LEDGER_GAUGES:
        assert samples(metrics, info.name) == {}


async def test_while_the_ledger_is_away_its_gauges_are_absent(plane: Plane) -> None:
    metrics = PrometheusMetrics()
    await metrics.refresh(plane.ledger)
    plane.detour.fail("in_flight")
    with pytest.raises(LedgerUnavailable):
        await metrics.refresh(cast(Ledger, plane.detour))
    assert samples(metrics, INFLIGHT) == samples(metrics, INFLIGHT_JOBS) == {}
    assert samples(metrics, LEDGER_UP) == {(): 0}


async def test_a_reading_that_nobody_renews_grows_old(plane: Plane) -> None:
    seconds = Seconds()
    metrics = PrometheusMetrics(seconds, max_age=timedelta(seconds=10))
    await metrics.refresh(plane.ledger)
    seconds.now = 10
    assert samples(metrics, INFLIGHT_JOBS) == {(): 0}
    seconds.now = 10.5
    assert samples(metrics, INFLIGHT_JOBS) == {}
    assert samples(metrics, LEDGER_UP) == {(): 0}


async def test_the_backlog_is_read_by_lane(plane: Plane) -> None:
    metrics = PrometheusMetrics()
    await plane.submit()
    await metrics.refresh(plane.ledger)
    found = samples(metrics, BACKLOG)
    assert len(found) == LANES
    assert found.pop((str(lane_of(TENANT)),)) == 1
    assert set(found.values()) == {0}


async def test_the_refresher_reads_until_it_is_stopped(plane: Plane) -> None:
    metrics, moment = PrometheusMetrics(), timedelta(milliseconds=1)
    refresher = GaugeRefresher(metrics, cast(Ledger, plane.detour), interval=moment)
    async with running([refresher]):
        await plane.detour.called("in_flight", times=3)
    await refresher.stop()
    calls = plane.detour.calls["in_flight"]
    await asyncio.sleep(0)
    assert plane.detour.calls["in_flight"] == calls


async def test_the_refresher_stops_at_once(plane: Plane) -> None:
    refresher = GaugeRefresher(PrometheusMetrics(), plane.ledger, interval=NEVER)
    async with asyncio.timeout(DEADLINE), running([refresher]):
        pass


async def test_a_ledger_that_goes_and_comes_is_told_once_each(
    plane: Plane, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    metrics = PrometheusMetrics()
    refresher = GaugeRefresher(metrics, cast(Ledger, plane.detour))
    plane.detour.fail("in_flight", error=RuntimeError("a defect; password=S3cr3t"))
    await refresher.run_once()
    await refresher.run_once()
    assert samples(metrics, LEDGER_UP) == {(): 0}
    plane.detour.heal()
    await refresher.run_once()
    await refresher.run_once()
    assert samples(metrics, LEDGER_UP) == {(): 1}
    told = [record.getMessage() for record in caplog.records]
    assert told == ["gauges.stale", "gauges.fresh"]
    assert {"gauges.stale", "gauges.fresh"} <= {info.name for info in EVENTS}
    assert vars(caplog.records[0])["error"] == "RuntimeError: a defect; password=***"


async def test_a_ledger_that_does_not_answer_is_away(plane: Plane) -> None:
    metrics, moment = PrometheusMetrics(), timedelta(milliseconds=1)

    async def for_ever() -> None:
        await asyncio.Event().wait()

    plane.detour.before["in_flight"] = for_ever
    refresher = GaugeRefresher(metrics, cast(Ledger, plane.detour), patience=moment)
    async with asyncio.timeout(DEADLINE):
        await refresher.run_once()
    assert samples(metrics, LEDGER_UP) == {(): 0}


def services_of(plane: Plane) -> Services:
    backlogs = Backlogs(plane.engine.ledger, lambda: plane.clock().timestamp())
    return Services(plane.traffic, backlogs, lambda: SHIPPED, plane.clock)


def of_services(metrics: PrometheusMetrics) -> dict[str, float]:
    """Of the service ocr, by the name of the gauge."""
    found = {info.name: samples(metrics, info.name) for info in SERVICE_GAUGES}
    return {name: values[("ocr",)] for name, values in found.items() if ("ocr",) in values}


async def test_services_are_shown_with_what_waits_and_what_they_said(plane: Plane) -> None:
    metrics, services = PrometheusMetrics(), services_of(plane)
    assert of_services(metrics) == {}
    await metrics.service_gauges.refresh(services)
    quiet = {
        SERVICE_WAITING: 0,
        SERVICE_OLDEST: 0,
        SERVICE_UNACKNOWLEDGED: 0,
        SERVICE_WORKING: 0,
        SERVICE_WINDOW: 1000,
        SERVICE_ABSENT: 0,
    }
    assert of_services(metrics) == quiet
    await plane.working()
    await plane.submit(request(idempotency_key="sent"))
    await plane.dispatch()
    await plane.submit(request(idempotency_key="waits"))
    plane.later(seconds=7)
    await metrics.service_gauges.refresh(services)
    assert of_services(metrics) == quiet | {
        SERVICE_WAITING: 1,
        SERVICE_OLDEST: 7,
        SERVICE_UNACKNOWLEDGED: 1,
        SERVICE_WORKING: 1,
        SERVICE_HEARD: 7,
    }
    assert set(samples(metrics, SERVICE_ABSENT)) == {("embedding",), ("ocr",), ("sis",)}


async def test_a_service_that_nothing_is_heard_from_is_shown_as_absent(plane: Plane) -> None:
    metrics = PrometheusMetrics()
    plane.engine.telemetry = engine.Telemetry(metrics)
    await plane.submit()
    await plane.dispatch()
    plane.later(seconds=32)
    await plane.sweep(AckTimeout)
    await metrics.service_gauges.refresh(services_of(plane))
    found = of_services(metrics)
    assert (found[SERVICE_ABSENT], found[SERVICE_WINDOW]) == (1, 1000)
    assert SERVICE_HEARD not in found
    assert samples(metrics, engine.UNANSWERED) == {("ocr",): 1}


async def test_services_that_could_not_be_read_for_a_while_are_not_shown(plane: Plane) -> None:
    seconds = Seconds()
    metrics = PrometheusMetrics(seconds, max_age=timedelta(seconds=10))
    refresher = GaugeRefresher(metrics.service_gauges, services_of(plane))
    await refresher.run_once()
    plane.detour.fail("backlogs")
    plane.later(seconds=10)
    seconds.now = 10
    await refresher.run_once()
    assert of_services(metrics)[SERVICE_WAITING] == 0
    seconds.now = 10.5
    assert of_services(metrics) == {}
    plane.detour.heal()
    await refresher.run_once()
    assert of_services(metrics)[SERVICE_WAITING] == 0


async def test_artifacts_are_shown_by_state_and_never_as_they_were_long_ago() -> None:
    seconds, catalogue = Seconds(), MemoryCatalogue()
    metrics = PrometheusMetrics(seconds)
    now = datetime(2026, 1, 27, tzinfo=UTC)
    blob = Blob("ab" * 32, 5, "ob_1", BlobState.LIVE, now, now)
    await catalogue.change(lambda rows: rows.put_blob(blob))
    assert samples(metrics, artifacts.BYTES) == {}
    await metrics.artifact_gauges.refresh(catalogue)
    assert samples(metrics, artifacts.BLOBS)[("live",)] == 1
    assert samples(metrics, artifacts.BYTES)[("live",)] == 5
    assert samples(metrics, artifacts.OPEN_UPLOADS) == samples(metrics, artifacts.DOOMED) == {(): 0}
    seconds.now += 301
    assert samples(metrics, artifacts.BLOBS) == {}


async def test_a_catalogue_that_is_away_leaves_no_numbers_and_is_asked_again() -> None:
    metrics, catalogue = PrometheusMetrics(), MemoryCatalogue()
    refresher = GaugeRefresher(metrics.artifact_gauges, catalogue)
    await refresher.run_once()
    assert samples(metrics, artifacts.OPEN_UPLOADS) == {(): 0}
    await catalogue.close()
    await refresher.run_once()
    assert samples(metrics, artifacts.OPEN_UPLOADS) == {}
