"""A badge: two parts, flat, in one file that needs no other."""

from contract_tests.reports.markup import Markup, tag
from contract_tests.reports.standing import Standing, standing
from contract_tests.verdicts import Report, Verdict, counted

_TITLE = "lucius conformance"
_HEIGHT = 20
_PADDING = 6
_WIDTHS = {"il": 3.0, "f t,": 4.0, "r": 4.7, "cskvxyz": 5.9, "mw": 10.0}
_GREEN, _RED, _YELLOW, _GREY, _DARK = "#2a8a3e", "#c5303c", "#b07d00", "#6e7681", "#3d444d"
_COLOURS = {
    Standing.CONFORMANT: _GREEN,
    Standing.NOT_CONFORMANT: _RED,
    Standing.INCOMPLETE: _YELLOW,
    Standing.FAULT: _GREY,
}


def badge(report: Report) -> str:
    """An SVG document."""
    said, colour = _message(report)
    left, right = _width(_TITLE), _width(said)
    return (
        tag(
            "svg",
            tag("title", f"{_TITLE}: {said}"),
            tag("rect", width=left + right, height=_HEIGHT, rx=3, fill=colour),
            tag("path", d=f"M3 0H{left}V{_HEIGHT}H3A3 3 0 0 1 0 17V3A3 3 0 0 1 3 0", fill=_DARK),
            tag(
                "g",
                *_text(_TITLE, 0, left),
                *_text(said, left, right),
                fill="#fff",
                text_anchor="middle",
                font_family="Verdana,Geneva,DejaVu Sans,sans-serif",
                font_size=11,
            ),
            xmlns="http://www.w3.org/2000/svg",
            width=left + right,
            height=_HEIGHT,
            role="img",
            aria_label=f"{_TITLE}: {said}",
        )
        + "\n"
    )


def _message(report: Report) -> tuple[str, str]:
    """Known failures are told: whoever sees the badge does not see the baseline."""
    found = standing(report)
    known = sum(outcome.is_known for outcome in report.of(Verdict.FAIL))
    if found is not Standing.CONFORMANT:
        return found, _COLOURS[found]
    if known:
        return f"{report.level}, {counted(known, 'known failure')}", _YELLOW
    return report.level, _GREEN


def _width(text: str) -> int:
    return round(sum(_width_of(letter) for letter in text)) + 2 * _PADDING


def _width_of(letter: str) -> float:
    """In Verdana, nearly."""
    return next((width for letters, width in _WIDTHS.items() if letter in letters), 6.8)


def _text(text: str, x: int, width: int) -> tuple[Markup, Markup]:
    """With a shadow. Its length is stated, so that it fits whatever font the reader has."""
    at = {"x": x + width / 2, "textLength": width - 2 * _PADDING}
    return (
        tag("text", text, y=15, fill="#010101", fill_opacity=0.3, aria_hidden="true", **at),
        tag("text", text, y=14, **at),
    )
