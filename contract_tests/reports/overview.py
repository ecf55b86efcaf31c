"""A timeline true to scale, from left to right: a lane each for harness, bus and service.

Places along a lane are percentages, so that it fits a phone and a wide screen and its text keeps
its size.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from contract_tests.reports.acts import LANES, Life, act, life_after
from contract_tests.reports.markup import Markup, tag
from contract_tests.timeline import SERVICE
from contract_tests.verdicts import Moment

_STEPS = tuple(base * 10.0**power for power in range(-3, 4) for base in (1, 2, 5))
_MOST_TICKS = 6
_LANE = {who: 12 + 24 * number for number, who in enumerate(LANES)}
_FOOT, _HEIGHT = 76, 94


def overview(moments: Sequence[Moment], hues: Mapping[str, str]) -> Markup:
    end = max(moments[-1].at, 0.001)
    lanes = [tag("line", class_="life", x2="100%", y1=y, y2=y) for y in _LANE.values()]
    strokes = [_stroke(moment, end, hues[moment.job]) for moment in moments]
    inside = [*_ticks(end), *lanes, *_outages(moments, end), *strokes]
    return tag(
        "div",
        tag("div", *(tag("span", who) for who in LANES), class_="names"),
        tag("svg", *inside, height=_HEIGHT),
        class_="overview",
        aria_hidden="true",
    )


def _stroke(moment: Moment, end: float, hue: str) -> Markup:
    """A message is a line from lane to lane with a dot where it arrives; all else is a ring."""
    found = act(moment)
    x, y = _percent(moment.at, end), _LANE[found.who]
    title = tag("title", f"{moment.at:.3f} s, {found.who}: {found.what} {found.rest}")
    if found.to is None:
        return tag("g", title, tag("circle", class_="ring", cx=x, cy=y, r=4), class_=hue)
    to = _LANE[found.to]
    line = tag("line", x1=x, x2=x, y1=y, y2=to)
    return tag("g", title, line, tag("circle", cx=x, cy=to, r=3), class_=hue)


def _outages(moments: Sequence[Moment], end: float) -> Iterator[Markup]:
    """Where the service was frozen or not there."""
    y = _LANE[SERVICE]
    life = Life.UP
    for moment, after in pairwise((*moments, moments[-1])):
        life = life_after(moment, life)
        if life is not Life.UP and after.at > moment.at:
            x1, x2 = _percent(moment.at, end), _percent(after.at, end)
            yield tag("line", class_="outage", x1=x1, x2=x2, y1=y, y2=y)
            yield tag("line", class_=f"life {life}", x1=x1, x2=x2, y1=y, y2=y)


def _ticks(end: float) -> Iterator[Markup]:
    step = next((each for each in _STEPS if end / each <= _MOST_TICKS), end)
    for number in range(int(end / step) + 1):
        at = number * step
        x = _percent(at, end)
        anchor = "start" if number == 0 else "end" if at > end * 0.95 else "middle"
        yield tag("line", class_="tick", x1=x, x2=x, y1=0, y2=_FOOT)
        yield tag("text", f"{at:g} s", x=x, y=_HEIGHT - 4, text_anchor=anchor)


def _percent(at: float, end: float) -> str:
    return f"{100 * min(max(at / end, 0), 1):.2f}%"
