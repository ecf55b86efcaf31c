"""A timeline with what repeats told once."""

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from contract_tests.verdicts import Moment
from orchestrator_mock import What

ROWS = 60
"""More than that is read by nobody; the table of all moments has the rest."""
_REPEATED = (What.RENEWED, What.HEARTBEAT)


class Row(NamedTuple):
    """A moment, and how often it came until when."""

    moment: Moment
    times: int
    until: float


class LeftOut(NamedTuple):
    rows: tuple[Row, ...]


def condensed(moments: Sequence[Moment], rows: int = ROWS) -> list[Row | LeftOut]:
    """Renewals and heartbeats that follow each other are one row for each job. Of a long timeline
    the beginning and the end."""
    found = list(_rows(moments))
    if len(found) <= rows:
        return list(found)
    first = math.ceil(rows * 2 / 3)
    last = first + len(found) - rows
    return [*found[:first], LeftOut(tuple(found[first:last])), *found[last:]]


def _rows(moments: Sequence[Moment]) -> Iterator[Row]:
    for is_repeated, group in groupby(moments, _is_repeated):
        if is_repeated:
            yield from _merged(group)
        else:
            yield from (Row(moment, 1, moment.at) for moment in group)


def _is_repeated(moment: Moment) -> bool:
    return moment.text.startswith(_REPEATED)


def _merged(moments: Iterator[Moment]) -> Iterator[Row]:
    alike: dict[tuple[str, str, str], list[Moment]] = {}
    for moment in moments:
        alike.setdefault((moment.who, moment.text, moment.job), []).append(moment)
    for each in alike.values():
        yield Row(each[0], len(each), each[-1].at)
