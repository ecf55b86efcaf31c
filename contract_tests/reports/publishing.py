"""A report as it may leave the machine that made it, and text that steers nobody's screen."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import PurePath

from contract_tests.verdicts import Moment, Outcome, Report

_MISSING = "\N{REPLACEMENT CHARACTER}"
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_LINE_ENDS = re.compile(r"\r\n?")
# Directions of writing can make a text look like another one; U+FFFE and U+FFFF are not XML.
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_LONE = re.compile(r"[\ud800-\udfff]")
_RUN_FOLDER = re.compile(r"(?:/[^/\s\"'<>]+)*/lucius-conform-\w+")

Told = Callable[[str], str]


def legible(text: str) -> str:
    """Without what a terminal obeys or XML forbids; lines stay lines."""
    return _UNSEEN.sub(_MISSING, _LINE_ENDS.sub("\n", _ESCAPES.sub("", text)))


def legible_line(text: str) -> str:
    return " ".join(legible(text).split())


def published(report: Report) -> Report:
    """The contract is called by its folder and file, wherever it is named; the folder of the run is
    left out; times are to the millisecond; all text can be encoded."""
    told = _teller(PurePath(report.contract))
    return replace(
        report,
        service=told(report.service),
        contract=told(report.contract),
        seconds=round(report.seconds, 3),
        outcomes=tuple(_outcome(outcome, told) for outcome in report.outcomes),
        surprises=tuple(map(told, report.surprises)),
    )


def _teller(contract: PurePath) -> Told:
    folder = contract.parent
    has_name = contract.is_absolute() and folder.name
    # A path that merely ends like this one is another one.
    pattern = rf"(?<![\w.~-]){re.escape(str(folder))}(?![\w.~-])" if has_name else r"(?!)"
    of_the_machine = re.compile(pattern)

    def told(text: str) -> str:
        text = of_the_machine.sub(lambda _: folder.name, text)
        return _LONE.sub(_MISSING, _RUN_FOLDER.sub("/…", text))

    return told


def _outcome(outcome: Outcome, told: Told) -> Outcome:
    return replace(
        outcome,
        seconds=round(outcome.seconds, 3),
        reason=told(outcome.reason),
        cause=told(outcome.cause),
        repeat=told(outcome.repeat),
        timeline=tuple(_moment(moment, told) for moment in outcome.timeline),
        log=told(outcome.log),
    )


def _moment(moment: Moment, told: Told) -> Moment:
    return replace(moment, at=round(moment.at, 3), text=told(moment.text))
