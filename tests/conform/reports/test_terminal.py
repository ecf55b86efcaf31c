import re
from dataclasses import replace

from hypothesis import given

from contract_tests.reports.terminal import WIDTH, line, summary
from contract_tests.rules import Level
from contract_tests.verdicts import Report, Verdict
from tests.conform.reports.samples import NASTY, failed, fault, passed, report, reports, skipped


def test_a_line_tells_the_end_the_case_and_why() -> None:
    assert line(passed("LC-01")).split() == ["pass", "LC-01/sample", "1.5", "s"]
    assert line(failed("LC-04")).startswith("FAIL   LC-04/sample")
    assert line(failed("LC-04")).endswith("the work ran twice")
    assert line(skipped("LC-26")).startswith("skip")
    assert line(fault("LC-05")).startswith("FAULT")
    assert line(replace(failed("LC-04"), is_known=True)).startswith("known")


def test_a_line_is_one_line_of_a_terminal() -> None:
    told = line(failed("LC-04", reason="many words\n" * 40))
    assert len(told) <= WIDTH
    assert "\n" not in told


def test_colour_changes_no_word() -> None:
    found = report(failed("LC-04"), fault("LC-05"))
    painted = summary(found, colour=True)
    assert "\x1b[" in painted
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == summary(found)
    assert re.sub(r"\x1b\[[\d;]*m", "", line(failed("LC-04"), colour=True)) == line(failed("LC-04"))


def test_a_summary_has_all_that_is_needed_to_mend_a_failure() -> None:
    found = failed("LC-04")
    told = summary(report(found))
    assert "the work ran twice" in told
    assert "A duplicate of a directive" in told
    assert "clause" in told
    assert "likely: Nothing is remembered." in told
    assert found.repeat in told
    assert "2.817  service  86a307  RESULT attempt 1" in told
    assert "last line" in told


def test_a_summary_ends_with_the_counts_and_the_headline() -> None:
    found = report(failed("LC-04"), skipped("LC-26"), level=Level.FULL)
    assert summary(found).splitlines()[-2:] == [
        "26 cases in 61 s: 1 failed, 24 passed, 1 skipped",
        found.headline,
    ]


def test_a_summary_of_a_good_run_is_short() -> None:
    assert len(summary(report()).splitlines()) == 2


def test_surprises_are_told() -> None:
    assert "baseline: LC-07 passes now" in summary(report(surprises=("LC-07 passes now",)))


def test_known_failures_are_counted_and_not_told_again() -> None:
    told = summary(report(replace(failed("LC-04"), is_known=True)))
    assert "1 known to fail" in told
    assert "the work ran twice" not in told


@given(reports())
def test_nothing_steers_the_terminal(found: Report) -> None:
    told = summary(found) + "".join(line(each) for each in found.outcomes)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", told)


@given(reports())
def test_a_summary_fits_the_terminal_but_for_commands(found: Report) -> None:
    lines = summary(found).split("\n")
    assert all(len(each) <= WIDTH for each in lines if not each.startswith("repeat"))


def test_a_nasty_reason_is_told() -> None:
    (found,) = report(failed("LC-04", reason=NASTY)).of(Verdict.FAIL)
    assert "<script>" in line(found)
