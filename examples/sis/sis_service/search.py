"""Where in a document the answer to a question may be."""

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

import numpy as np
from lucius_vectors import Chunk
from numpy.typing import NDArray

from sis_service.source import Source
from sis_service.statements import Statement, statements
from sis_service.wanted import has_what_is_asked
from sis_service.words import telling_words, words_of

PASSAGES = 4
"""How many are looked into."""
THRESHOLD = 0.35
"""What scores less is no answer."""
_WORDS_WEIGHT = 0.5
"""Of the question's words, beside its meaning."""
_OTHER_KIND = 0.6
"""What is left of the score of a statement that has no thing of the kind that is asked for."""


class Passage(NamedTuple):
    chunk: Chunk
    score: float


class Scored(NamedTuple):
    statement: Statement
    score: float


class Question(NamedTuple):
    text: str
    vector: NDArray[np.float32]
    weights: Mapping[str, float]
    """Of its words: the rarer in the document, the more."""


class Search:
    """One document; what was embedded of it is kept."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._vectors: dict[str, NDArray[np.float32]] = {}

    @property
    def is_empty(self) -> bool:
        return not self._statements

    def question(self, text: str) -> Question:
        count = len(self._statements)
        weights = {
            word: math.log(1 + count / (self._frequencies[word] + 0.5))
            for word in telling_words(text)
        }
        return Question(text, self._vector(text), weights)

    def passages(self, question: Question, most: int) -> list[Passage]:
        """The nearest in meaning, the best first."""
        scores = self._source.vectors @ question.vector
        best = np.argsort(-scores, kind="stable")[:most]
        return [Passage(self._source.chunks[i], float(scores[i])) for i in best]

    def statements_in(self, passages: list[Passage]) -> list[Statement]:
        """In the order of the document, without headings: they name an answer, and give none."""
        numbers: set[int] = set()
        for chunk, _ in passages:
            first = bisect_right(self._statements, chunk.start, key=lambda one: one.end)
            last = bisect_left(self._statements, chunk.end, key=lambda one: one.start)
            numbers.update(range(first, last))
        found = (self._statements[number] for number in sorted(numbers))
        return [one for one in found if not one.is_heading]

    def score(self, question: Question, text: str) -> float:
        """From 0 to 1: nearness in meaning, and how many of the question's words are in the
        text."""
        nearness = float(self._vector(text) @ question.vector)
        words, total = words_of(text), sum(question.weights.values())
        shared = sum(weight for word, weight in question.weights.items() if word in words)
        share = shared / total if total else 0.0
        return max((nearness + _WORDS_WEIGHT * share) / (1 + _WORDS_WEIGHT), 0.0)

    def best_statement(self, question: Question, passages: list[Passage]) -> Scored | None:
        """The one that answers the question most likely."""
        found = self.statements_in(passages)
        scored = [Scored(one, self._answer_score(question, one.said)) for one in found]
        return max(scored, key=lambda one: one.score, default=None)

    def _answer_score(self, question: Question, text: str) -> float:
        """An answer says something that the question does not."""
        if words_of(text) <= words_of(question.text):
            return 0.0
        factor = 1.0 if has_what_is_asked(question.text, text) else _OTHER_KIND
        return factor * self.score(question, text)

    @cached_property
    def _statements(self) -> list[Statement]:
        return list(statements(self._source.texts))

    @cached_property
    def _frequencies(self) -> Counter[str]:
        return Counter(word for one in self._statements for word in words_of(one.said))

    def _vector(self, text: str) -> NDArray[np.float32]:
        if text not in self._vectors:
            self._vectors[text] = self._source.model.embed([text])[0]
        return self._vectors[text]
