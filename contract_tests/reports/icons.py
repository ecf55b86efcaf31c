"""A sign and a colour for each way in which something can end; never a colour alone."""

from contract_tests.reports.markup import Markup, tag
from contract_tests.reports.standing import Mark, Standing

_SIGNS = {
    "pass": "M3.5 8.5 6.5 11.5 12.5 4.8",
    "fail": "M4.2 4.2 11.8 11.8M11.8 4.2 4.2 11.8",
    "known": "M4.2 4.2 11.8 11.8M11.8 4.2 4.2 11.8",
    "fault": "M8 3.5V9M8 12.2V12.3",
    "skip": "M4 8H12",
    "part": "M8 3.5V8.5L11 10.5",
}
_MARKS = {
    Mark.PASS: "pass",
    Mark.FAIL: "fail",
    Mark.KNOWN: "known",
    Mark.FAULT: "fault",
    Mark.SKIPPED: "skip",
}
_STANDINGS = {
    Standing.CONFORMANT: "pass",
    Standing.NOT_CONFORMANT: "fail",
    Standing.INCOMPLETE: "part",
    Standing.FAULT: "fault",
}


def colour(of: Mark | Standing) -> str:
    """The name of its class in the style sheet."""
    return _MARKS[of] if isinstance(of, Mark) else _STANDINGS[of]


def icon(of: Mark | Standing) -> Markup:
    sign = tag("path", d=_SIGNS[colour(of)])
    return tag("svg", sign, class_="icon", viewBox="0 0 16 16", aria_hidden="true")
