"""What the runtime tells is what a scrape finds."""

import threading

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lucius_outbox.telemetry import Kind
from lucius_sdk import metrics as sdk
from lucius_sdk.metrics import METRICS, Metrics, NoMetrics, StepMetrics, StepOutcome


def samples(metrics: Metrics, name: str) -> dict[tuple[str, ...], float]:
    """Values by labels, in the order of their names, as a scrape sees them."""
    families = text_string_to_metric_families(metrics.render().decode())
    found = [sample for family in families for sample in family.samples if sample.name == name]
    return {tuple(v for _, v in sorted(each.labels.items())): each.value for each in found}


def tell_everything(metrics: StepMetrics) -> None:
    metrics.received(3)
    metrics.received(3)
    metrics.finished("OCR", StepOutcome.SUCCEEDED, 0.3)
    metrics.finished("OCR", "duplicate")
    metrics.running(1)
    metrics.waiting(2)
    metrics.waiting(-1)
    metrics.reply("ACK", "APPLIED")
    metrics.reply_retried("RESULT")
    metrics.renewal("renewed")
    metrics.unreported(1)


def test_each_verb_moves_its_own_series() -> None:
    metrics = Metrics()
    tell_everything(metrics)
    assert samples(metrics, sdk.RECEIVED) == {("3",): 2}
    assert samples(metrics, sdk.DIRECTIVES) == {("succeeded", "OCR"): 1, ("duplicate", "OCR"): 1}
    assert samples(metrics, f"{sdk.STEP_SECONDS}_count") == {("OCR",): 1}
    assert samples(metrics, f"{sdk.STEP_SECONDS}_sum") == {("OCR",): 0.3}
    assert samples(metrics, sdk.RUNNING) == {(): 1}
    assert samples(metrics, sdk.WAITING) == {(): 1}
    assert samples(metrics, sdk.REPLIES) == {("ACK", "APPLIED"): 1}
    assert samples(metrics, sdk.REPLY_RETRIES) == {("RESULT",): 1}
    assert samples(metrics, sdk.RENEWALS) == {("renewed",): 1}
    assert samples(metrics, sdk.UNREPORTED) == {(): 1}


def test_a_scrape_has_every_metric_of_the_table_with_its_kind_and_its_labels() -> None:
    metrics = Metrics()
    tell_everything(metrics)
    families = {
        each.name: each for each in text_string_to_metric_families(metrics.render().decode())
    }
    for info in METRICS:
        family = families[
            info.name.removesuffix("_total") if info.kind is Kind.COUNTER else info.name
        ]
        assert (family.type, family.documentation) == (info.kind, info.meaning)
        (sample, *_) = family.samples
        assert set(sample.labels) - {"le"} == set(info.labels)


def test_gauges_are_there_before_anything_was_told() -> None:
    metrics = Metrics()
    for name in (sdk.RUNNING, sdk.WAITING, sdk.UNREPORTED):
        assert samples(metrics, name) == {(): 0}


def test_two_services_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.received(0)
    assert samples(other, sdk.RECEIVED) == {}


def test_step_types_that_nobody_expects_are_counted_together() -> None:
    metrics = Metrics()
    for number in range(sdk.MOST_STEP_TYPES + 50):
        metrics.finished(f"TYPE_{number}", StepOutcome.DEAD_LETTERED)
    metrics.finished("TYPE_0", StepOutcome.DEAD_LETTERED)
    found = samples(metrics, sdk.DIRECTIVES)
    assert len(found) == sdk.MOST_STEP_TYPES + 1
    assert found[("dead_lettered", sdk.OTHER)] == 50
    assert found[("dead_lettered", "TYPE_0")] == 2


def test_what_several_threads_tell_is_counted_whole() -> None:
    metrics = Metrics()

    def tell() -> None:
        for _ in range(1000):
            metrics.finished("OCR", StepOutcome.SUCCEEDED, 1.0)

    threads = [threading.Thread(target=tell) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert samples(metrics, sdk.DIRECTIVES) == {("succeeded", "OCR"): 4000}


@pytest.mark.parametrize("metrics", [Metrics(), NoMetrics()])
def test_who_does_not_count_hears_the_same_verbs(metrics: StepMetrics) -> None:
    tell_everything(metrics)
    assert isinstance(metrics.render(), bytes)
