"""A timeline as a drawing: an overview to scale, and below it a line for each moment that shows who
sent what to whom.

The lines are drawn one by one between words that wrap, so that they can be read on a phone.
"""

from collections.abc import Iterator, Mapping, Sequence

from contract_tests.reports.acts import LANES, Act, Life, act, hues, life_after
from contract_tests.reports.condensing import LeftOut, Row, condensed
from contract_tests.reports.markup import Markup, joined, tag
from contract_tests.reports.overview import overview
from contract_tests.timeline import SERVICE
from contract_tests.verdicts import Moment, counted

_PAUSE = 0.5
"""Seconds in which nothing happened that are worth a word."""
_LANE = {who: f"{(2 * number + 1) * 100 / 6:.1f}%" for number, who in enumerate(LANES)}
_Y = 14
_ARROW = "→"
_WELCOME = ("200", "APPLIED", "DUPLICATE")
_HEADS = {True: "M-7-4 0 0-7 4", False: "M7-4 0 0 7 4"}


def drawing(moments: Sequence[Moment]) -> Markup:
    if not moments:
        return Markup()
    colours = hues(moments)
    lines = tag("ol", _heading(), *_lines(moments, colours), class_="sequence")
    return tag("div", overview(moments, colours), lines, class_="drawing")


def _heading() -> Markup:
    names = [tag("text", who, x=x, y=_Y, text_anchor="middle") for who, x in _LANE.items()]
    lanes = tag("span", tag("svg", *names), class_="lanes")
    return tag("li", tag("span", "s", class_="at"), lanes, class_="heading", aria_hidden="true")


def _lines(moments: Sequence[Moment], colours: Mapping[str, str]) -> Iterator[Markup]:
    life, before = Life.UP, moments[0].at
    for row in condensed(moments):
        if isinstance(row, LeftOut):
            yield _between(f"{counted(len(row.rows), 'line')} more, in the table", life)
            for left in row.rows:
                life, before = life_after(left.moment, life), left.until
            continue
        if row.moment.at - before >= _PAUSE:
            yield _between(f"{row.moment.at - before:.1f} s later", life)
        after = life_after(row.moment, life)
        yield _line(row, (life, after), colours[row.moment.job])
        life, before = after, row.until


def _line(row: Row, life: tuple[Life, Life], hue: str) -> Markup:
    found = act(row.moment)
    return tag(
        "li",
        tag("span", f"{row.moment.at:.3f}", class_="at"),
        tag("span", tag("svg", *_lifelines(*life), _mark(found, hue)), class_="lanes"),
        _words(row, found, hue),
    )


def _between(text: str, life: Life) -> Markup:
    lanes = tag("span", tag("svg", *_lifelines(life, life)), class_="lanes")
    return tag("li", tag("span", class_="at"), lanes, tag("span", text), class_="pause")


def _lifelines(before: Life, after: Life) -> Iterator[Markup]:
    for who, x in _LANE.items():
        if who != SERVICE or before is after:
            kind = before if who == SERVICE else Life.UP
            yield tag("line", class_=f"life {kind}", x1=x, x2=x, y2="100%")
        else:
            yield tag("line", class_=f"life {before}", x1=x, x2=x, y2=_Y)
            yield tag("line", class_=f"life {after}", x1=x, x2=x, y1=_Y, y2="100%")


def _mark(found: Act, hue: str) -> Markup:
    x = _LANE[found.who]
    if found.to is None:
        return tag("g", tag("circle", class_="ring", cx=x, cy=_Y, r=4.5), class_=hue)
    to = _LANE[found.to]
    is_rightwards = LANES.index(found.to) > LANES.index(found.who)
    # A viewport of its own, since the points of a path cannot be percentages.
    head = tag("svg", tag("path", d=_HEADS[is_rightwards]), x=to, y=_Y, overflow="visible")
    start = tag("circle", cx=x, cy=_Y, r=3)
    return tag("g", tag("line", x1=x, x2=to, y1=_Y, y2=_Y), start, head, class_=hue)


def _words(row: Row, found: Act, hue: str) -> Markup:
    job = tag("span", row.moment.job, class_=f"job {hue}") if row.moment.job else None
    times = f"{row.times} times, until {row.until:.3f}" if row.times > 1 else None
    return tag(
        "span",
        job and joined(job, " "),
        joined(tag("b", found.what), " ", _rest(found.rest))
        if found.what
        else tag("em", found.rest),
        times and joined(" ", tag("span", times, class_="times")),
        class_="said",
    )


def _rest(text: str) -> Markup:
    """An answer that is no success is marked."""
    said, arrow, answer = text.partition(_ARROW)
    is_odd = bool(arrow) and not answer.strip().startswith(_WELCOME)
    return joined(said, tag("mark", arrow, answer) if is_odd else joined(arrow, answer))
