from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract_tests.baseline import (
    Baseline,
    BaselineUnusable,
    KnownFailure,
    apply,
    load_baseline,
)
from contract_tests.verdicts import ExitCode, Outcome, Report
from tests.conform.reports.samples import failed, fault, passed, report, reports, skipped


def _case(name: str) -> KnownFailure:
    return KnownFailure(case=name, reason="we know")


def _rule(name: str) -> KnownFailure:
    return KnownFailure(rule=name, reason="we know")


def _applied(found: Report, *entries: KnownFailure) -> Report:
    return apply(found, Baseline(known_failures=entries))


def test_a_known_failure_does_not_fail_the_run() -> None:
    found = _applied(report(failed("LC-07", "frozen")), _case("LC-07/frozen"))
    assert found.exit_code is ExitCode.CONFORMANT
    assert "1 known failure" in found.headline


def test_a_rule_covers_all_its_cases() -> None:
    found = report(failed("LC-07", "frozen"), failed("LC-07", "on-arrival-http"))
    assert _applied(found, _rule("LC-07")).exit_code is ExitCode.CONFORMANT


def test_another_failure_still_fails_the_run() -> None:
    found = report(failed("LC-07", "frozen"), failed("LC-07", "on-arrival-http"))
    found = _applied(found, _case("LC-07/frozen"))
    assert [each.case_id for each in found.failures] == ["LC-07/on-arrival-http"]
    assert found.exit_code is ExitCode.NOT_CONFORMANT


@pytest.mark.parametrize("entry", [_case("LC-07/frozen"), _rule("LC-07")])
def test_an_entry_that_passes_now_fails_the_run(entry: KnownFailure) -> None:
    found = _applied(report(passed("LC-07", "frozen")), entry)
    (said,) = found.surprises
    assert said.startswith(entry.name)
    assert said.endswith("remove its entry")
    assert found.exit_code is ExitCode.NOT_CONFORMANT


@pytest.mark.parametrize("entry", [_case("LC-07/thawed"), _rule("LC-99"), _case("LC-07")])
def test_an_entry_of_nothing_fails_the_run(entry: KnownFailure) -> None:
    found = _applied(report(), entry)
    (said,) = found.surprises
    assert entry.name in said
    assert "no such" in said
    assert found.exit_code is ExitCode.NOT_CONFORMANT


@pytest.mark.parametrize("outcome", [skipped("LC-07"), fault("LC-07")])
def test_what_was_not_judged_is_no_surprise(outcome: Outcome) -> None:
    frozen = replace(outcome, case_id="LC-07/frozen")
    found = _applied(report(frozen), _case("LC-07/frozen"), _rule("LC-07"))
    assert found.surprises == ()


def test_a_rule_that_passes_in_part_is_no_surprise() -> None:
    found = report(passed("LC-07", "on-arrival-http"), skipped("LC-07"))
    assert _applied(found, _rule("LC-07")).surprises == ()


def test_a_run_of_other_cases_is_no_surprise() -> None:
    found = replace(report(), outcomes=(passed("LC-01"),), is_partial=True)
    assert _applied(found, _case("LC-07/frozen"), _rule("LC-07")).surprises == ()


def test_a_run_of_some_cases_of_a_rule_says_nothing_of_the_rule() -> None:
    only = (passed("LC-07", "frozen"),)
    found = replace(report(), outcomes=only, is_partial=True)
    assert _applied(found, _rule("LC-07")).surprises == ()
    assert len(_applied(found, _case("LC-07/frozen")).surprises) == 1


@given(reports(), st.lists(st.sampled_from(["LC-01", "LC-04", "LC-99"]), unique=True))
def test_to_apply_a_baseline_again_changes_nothing(found: Report, rules: list[str]) -> None:
    baseline = Baseline(known_failures=tuple(map(_rule, rules)))
    once = apply(found, baseline)
    assert apply(once, baseline) == once


def _written(folder: Path, text: str) -> Path:
    path = folder / "baseline.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read(tmp_path: Path) -> None:
    path = _written(
        tmp_path,
        """
known_failures:
  - {case: LC-07/frozen, reason: no timeout yet, issue: "#42"}
  - {rule: LC-22, reason: next release}
""",
    )
    first, second = load_baseline(path).known_failures
    assert (first.case, first.issue) == ("LC-07/frozen", "#42")
    assert second.rule == "LC-22"


def test_a_file_may_list_nothing(tmp_path: Path) -> None:
    path = _written(tmp_path, "known_failures: []")
    assert load_baseline(path).known_failures == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "known_failures"),
        ("[]", "known_failures"),
        ("known: []", "/known_failures"),
        ("known_failures: {}", "/known_failures"),
        ("known_failures: [{case: LC-07/frozen}]", "/known_failures/0/reason"),
        ("known_failures: [{reason: x}]", "either `case` or `rule`"),
        ("known_failures: [{case: a, rule: b, reason: x}]", "either `case` or `rule`"),
        ("known_failures: [{rule: a, reason: x}, {rule: a, reason: y}]", "more than once"),
        ("known_failures: [{rule: a, reason: x, until: 2030}]", "/known_failures/0/until"),
        ("known_failures: [", "cannot be read"),
    ],
)
def test_a_damaged_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BaselineUnusable, match=told):
        load_baseline(_written(tmp_path, text))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BaselineUnusable, match="no such file"):
        load_baseline(tmp_path / "none.yaml")
