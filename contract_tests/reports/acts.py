"""What a line of a timeline means: from whom to whom something went, and how the service was."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from contract_tests.timeline import BUS, HARNESS, SERVICE
from contract_tests.verdicts import Moment
from orchestrator_mock import What

LANES = (HARNESS, BUS, SERVICE)
_HUES = 5
_REPLIES = (What.ACK, What.RESULT, What.HEARTBEAT, What.UNREADABLE)
_TO = {
    What.PUBLISHED: BUS,
    What.DELIVERED: SERVICE,
    What.RENEWED: BUS,
    What.COMPLETED: BUS,
    What.ABANDONED: BUS,
    What.DEAD_LETTERED: BUS,
    What.DEFERRED: BUS,
    What.READ: HARNESS,
    What.READ_ENDED: SERVICE,
}
# The longest first: "read ended" begins with "read".
_WHATS = sorted(What, key=len, reverse=True)


class Life(StrEnum):
    """Of the service, from a moment on."""

    UP = "up"
    FROZEN = "frozen"
    DOWN = "down"


_LIVES = {
    "the service is started": Life.UP,
    "the service goes on": Life.UP,
    "the service is frozen": Life.FROZEN,
    "the service is killed": Life.DOWN,
    "the service ended": Life.DOWN,
}


class Act(NamedTuple):
    """`to` is None if nobody else had a part in it. `what` is empty if it is a note."""

    who: str
    to: str | None
    what: str
    rest: str


def act(moment: Moment) -> Act:
    """A text that is not understood is somebody's note."""
    who = moment.who if moment.who in LANES else HARNESS
    what = next((each for each in _WHATS if _begins(moment.text, each)), None)
    if what is None or what is What.NOTE:
        return Act(who, None, "", moment.text.removeprefix(What.NOTE).strip())
    rest = moment.text.removeprefix(what).strip()
    return Act(who, _addressee(what, rest), what, rest)


def life_after(moment: Moment, before: Life) -> Life:
    """Only the harness's own notes tell."""
    if moment.who != HARNESS:
        return before
    note = act(moment).rest
    return next((life for text, life in _LIVES.items() if note.startswith(text)), before)


def hues(moments: Sequence[Moment]) -> dict[str, str]:
    """The class of each job's colour, in the order in which the jobs come."""
    jobs = dict.fromkeys(moment.job for moment in moments if moment.job)
    return {"": "j", **{job: f"j j{number % _HUES}" for number, job in enumerate(jobs)}}


def _begins(text: str, what: str) -> bool:
    return text == what or text.startswith(f"{what} ")


def _addressee(what: What, rest: str) -> str | None:
    if what in _REPLIES:
        return BUS if "over bus" in rest else HARNESS
    return _TO.get(what)
