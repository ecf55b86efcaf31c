"""The result of a step: an answer for each prompt, and where it was found."""

from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from sis_service.payload import Prompt
from sis_service.search import Passage
from sis_service.statements import Statement

_DIGITS = 4


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class Place(_Part):
    """Characters `start` to `end` of the document's text."""

    start: int
    end: int
    text: str

    @classmethod
    def of(cls, statement: Statement) -> Self:
        return cls(start=statement.start, end=statement.end, text=statement.text)


class Nearby(Place):
    """A passage of the document, and how near it is to the prompt."""

    score: float

    @classmethod
    def of_passage(cls, passage: Passage) -> Self:
        chunk, score = passage
        return cls(start=chunk.start, end=chunk.end, text=chunk.text, score=round(score, _DIGITS))


class Field(_Part):
    """A member of a JSON answer."""

    value: Any
    score: float
    source: Place


class Answer(_Part):
    """`answer` is None if nothing was `found`; `reason` says why."""

    name: str
    prompt: str
    output: Literal["text", "json"]
    found: bool
    answer: Any = None
    reason: str | None = None
    score: float | None = None
    source: Place | None = None
    fields: dict[str, Field] | None = None
    """Of a JSON answer that was put together, by JSON pointer."""
    passages: list[Nearby] = []


class Result(_Part):
    format: Literal["lucius.sis/1"] = "lucius.sis/1"
    engine: str
    model: str
    answers: list[Answer]


def answer_to(prompt: Prompt, passages: list[Passage], **members: Any) -> Answer:
    return Answer(
        name=prompt.name,
        prompt=prompt.prompt,
        output=prompt.output,
        passages=[Nearby.of_passage(passage) for passage in passages],
        **members,
    )


def rounded(score: float) -> float:
    return round(score, _DIGITS)
