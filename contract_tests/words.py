"""The words that rules are written in, for people who meet them for the first time."""

import re
from typing import NamedTuple


class Word(NamedTuple):
    word: str
    meaning: str
    pattern: str


WORDS: tuple[Word, ...] = (
    Word(
        "directive",
        "a message on the bus that asks a service to do one attempt of one step of a job",
        r"directives?",
    ),
    Word(
        "ACK",
        "the service's first reply: it has picked the directive up and is about to work",
        r"ACKs?|acknowledged",
    ),
    Word(
        "RESULT",
        "the service's last reply: how the attempt ended, and what it has written",
        r"RESULTs?",
    ),
    Word(
        "attempt",
        "one try of a step; when it fails or falls silent, the orchestrator starts the next one"
        " with a number that is one higher",
        r"attempts?",
    ),
    Word(
        "lease",
        "the right to work on an attempt, until a certain time; an ACK or a heartbeat renews it,"
        " and when it ends the orchestrator may give the step to somebody else",
        r"leases?|STALE_ATTEMPT",
    ),
    Word(
        "lock",
        "the bus's own promise to give a message to nobody else for some seconds; the receiver can"
        " renew it",
        r"locks?",
    ),
    Word(
        "duplicate",
        "the same directive again: the bus delivers at least once, so it may deliver twice",
        r"[Dd]uplicates?",
    ),
    Word("settle", "tell the bus that a message is done with, or dead-letter it", r"settled?"),
    Word(
        "dead-letter",
        "put a message aside, with a reason, for a person to look at",
        r"dead-letter(ed|s)?",
    ),
    Word(
        "heartbeat",
        "a reply that says that the work goes on; it extends the lease",
        r"[Hh]eartbeats?|HEARTBEATs?",
    ),
    Word("ref", "an address of a document that the service reads or writes", r"refs?|output_ref"),
    Word("artifact", "a file that a step has written for the steps after it", r"artifacts?"),
    Word(
        "lane", "one of the 16 pairs of topics over which directives and replies travel", r"lanes?"
    ),
    Word("redelivery", "the bus gives out again what nobody has settled", r"redelivery"),
    Word(
        "trace",
        "an id that all messages of a job share, so that its way can be followed",
        r"traces?|traceparent",
    ),
    Word("payload", "the parameters of the step, in the directive", r"payloads?"),
)


def words_in(text: str) -> list[Word]:
    return [word for word in WORDS if re.search(rf"\b(?:{word.pattern})\b", text)]
