"""What a person at a terminal reads: a line for each case as it comes, then what to do."""

import textwrap
from collections.abc import Iterator, Sequence

from contract_tests.reports.condensing import LeftOut, Row, condensed
from contract_tests.reports.publishing import legible, legible_line
from contract_tests.reports.standing import Mark, Standing, mark, standing, tally
from contract_tests.rules import rule
from contract_tests.verdicts import Moment, Outcome, Report, counted
from orchestrator_mock import What

WIDTH = 100
_ROWS = 40
_LOG_LINES = 4
_NAMES = {
    Mark.PASS: "pass",
    Mark.FAIL: "FAIL",
    Mark.KNOWN: "known",
    Mark.FAULT: "FAULT",
    Mark.SKIPPED: "skip",
}
_WORDS = {
    Mark.PASS: "passed",
    Mark.FAIL: "failed",
    Mark.KNOWN: "known to fail",
    Mark.FAULT: "not judged",
    Mark.SKIPPED: "skipped",
}
_RED, _GREEN, _YELLOW, _CYAN, _BOLD, _DIM = "31", "32", "33", "36", "1", "2"
_COLOURS = {
    Mark.PASS: _GREEN,
    Mark.FAIL: _RED,
    Mark.KNOWN: _YELLOW,
    Mark.FAULT: _YELLOW,
    Mark.SKIPPED: _DIM,
    Standing.CONFORMANT: _GREEN,
    Standing.NOT_CONFORMANT: _RED,
    Standing.INCOMPLETE: _YELLOW,
    Standing.FAULT: _YELLOW,
}


def line(outcome: Outcome, *, colour: bool = False) -> str:
    """It fits into the width; the whole reason is in the summary."""
    end = mark(outcome)
    seconds = "" if end is Mark.SKIPPED else f"{outcome.seconds:.1f} s"
    told = f"{legible_line(outcome.case_id):<28} {seconds:>7}"
    reason = legible_line(outcome.reason)
    if reason:
        told += "  " + textwrap.shorten(reason, max(WIDTH - 9 - len(told), 20), placeholder=" …")
    return f"{_painted(f'{_NAMES[end]:<5}', _COLOURS[end], colour)}  {told}"


def summary(report: Report, *, colour: bool = False) -> str:
    """Every failure with what is needed to mend it; then how many, and the headline."""
    lines: list[str] = []
    for outcome in report.outcomes:
        if mark(outcome) in (Mark.FAIL, Mark.FAULT):
            lines += [*_failure(outcome, colour), ""]
    for surprise in report.surprises:
        lines += _wrapped(f"baseline: {legible_line(surprise)}", following="  ")
    lines += [""] if report.surprises else []
    style = f"{_BOLD};{_COLOURS[standing(report)]}"
    headline = [_painted(each, style, colour) for each in _wrapped(legible_line(report.headline))]
    return "\n".join([*lines, _counts(report), *headline])


def failure_text(outcome: Outcome, *, colour: bool = False) -> str:
    """What is needed to mend one."""
    return "\n".join(_failure(outcome, colour))


def _failure(outcome: Outcome, colour: bool) -> Iterator[str]:
    end = mark(outcome)
    title = f"{_NAMES[end]} {legible_line(outcome.case_id)} "
    yield _painted(title + "─" * (WIDTH - len(title)), f"{_BOLD};{_COLOURS[end]}", colour)
    for part in legible(outcome.reason).splitlines():
        yield from _wrapped(part) or [""]
    yield ""
    yield from _facts(outcome, colour)
    if outcome.timeline:
        yield from ("", *_timeline(outcome.timeline, colour))
    if outcome.log:
        yield from ("", *_log(outcome.log, colour))


def _facts(outcome: Outcome, colour: bool) -> Iterator[str]:
    broken = rule(outcome.rule_id)
    facts = {
        "rule": f"{broken.id}: {broken.statement}",
        "clause": f"service contract, “{broken.clause}”",
        "cause": f"likely: {legible_line(outcome.cause)}" if outcome.cause else "",
    }
    for name, text in facts.items():
        for number, part in enumerate(textwrap.wrap(text, WIDTH - 8)):
            yield _painted(f"{'' if number else name:<8}", _DIM, colour) + part
    if outcome.repeat:
        # Never wrapped: it is there to be copied.
        yield _painted("repeat  ", _DIM, colour) + _painted(legible(outcome.repeat), _CYAN, colour)


def _timeline(moments: Sequence[Moment], colour: bool) -> Iterator[str]:
    for row in condensed(moments, _ROWS):
        if isinstance(row, LeftOut):
            yield _painted(f"{'':11}… {counted(len(row.rows), 'line')} more", _DIM, colour)
        else:
            yield from _row(row)


def _row(row: Row) -> list[str]:
    moment = row.moment
    begin = f"{moment.at:9.3f}  {legible_line(moment.who):<8} {legible_line(moment.job):<6}  "
    text = legible_line(moment.text).removeprefix(f"{What.NOTE} ")
    if row.times > 1:
        text += f", {row.times} times until {row.until:.3f}"
    return _wrapped(text, begin, " " * len(begin)) or [begin.rstrip()]


def _log(log: str, colour: bool) -> Iterator[str]:
    """The last lines, cut to the width: the other reports have more of it."""
    found = [each.rstrip() for each in legible(log).expandtabs().splitlines() if each.strip()]
    for each in found[-_LOG_LINES:]:
        is_long = len(each) > WIDTH - 5
        yield _painted("log  ", _DIM, colour) + (each[: WIDTH - 7] + " …" if is_long else each)


def _counts(report: Report) -> str:
    counts = tally(report)
    told = [f"{number} {_WORDS[end]}" for end, number in counts.items() if number]
    total = counted(len(report.outcomes), "case")
    return f"{total} in {report.seconds:.0f} s: {', '.join(told) or 'nothing judged'}"


def _wrapped(text: str, begin: str = "", following: str = "") -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=begin,
        subsequent_indent=following,
        break_on_hyphens=False,
    )


def _painted(text: str, style: str, colour: bool) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if colour and text.strip() else text
