"""A form is filled in with what a document says."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from sis_service.answer_schema import problems
from sis_service.forms import Member, values_of
from sis_service.mention import Mention
from sis_service.search import PASSAGES, THRESHOLD, Passage, Question, Search
from sis_service.statements import Statement
from sis_service.values import is_free_text, reader_of, tells_its_kind
from sis_service.words import without_kinds

LOWER_THRESHOLD = 0.15
"""For a thing whose form says what it is, and of which there is but one: an address of mail."""
_MOST_TRIED = 20
_AROUND_LABELS = " .,:;-\u2013()[]|="
_ABSENT = object()


class Find(NamedTuple):
    value: Any
    score: float
    statement: Statement
    is_named: bool = False


class Filled(NamedTuple):
    value: Any
    finds: dict[str, Find]
    """By JSON pointer."""
    missing: list[str]
    """What the schema requires and the document does not say, by JSON pointer."""


class Filler:
    """Of one prompt. `check` is called now and then; it raises to stop."""

    def __init__(self, search: Search, prompt: str, check: Callable[[], None]) -> None:
        self._search = search
        self._prompt = prompt
        self._check = check

    def fill(self, form: Member) -> Filled:
        members = list(values_of(form))
        finds: dict[str, Find] = {}
        for member in members:
            self._check()
            # A form with one member asks what the prompt asks; of several the prompt tells none.
            prompt = self._prompt if len(members) == 1 else ""
            find = self._find(member, f"{prompt} {member.question}".strip())
            if find is not None:
                finds[member.pointer] = find
        missing: list[str] = []
        value = _assembled(form, finds, missing)
        return Filled(None if value is _ABSENT else value, finds, missing)

    def _find(self, member: Member, asked: str) -> Find | None:
        """The best value that is near enough, and that the member's schema allows."""
        found = list(self._candidates(member, asked))
        is_alone = tells_its_kind(member.schema) and len({find.value for find in found}) == 1
        threshold = LOWER_THRESHOLD if is_alone else THRESHOLD
        near = sorted((find for find in found if find.score >= threshold), key=_rank)[:_MOST_TRIED]
        wrong = problems(member.schema, [find.value for find in near])
        return next((find for find, told in zip(near, wrong, strict=True) if not told), None)

    def _candidates(self, member: Member, asked: str) -> Iterator[Find]:
        read = reader_of(member.schema, member.names, asked)
        if read is None or not asked:
            return
        questions = self._questions(asked)
        passages = self._search.passages(questions[0], PASSAGES)
        for statement in self._search.statements_in(passages):
            mentions = sorted(set(read(statement)))
            for mention, texts in zip(mentions, _contexts(statement.said, mentions), strict=True):
                score = self._score(questions, texts)
                yield Find(mention.value, score, statement, mention.is_named)
        if is_free_text(member.schema):
            yield from self._whole_statement(questions, passages)

    def _whole_statement(
        self, questions: Sequence[Question], passages: list[Passage]
    ) -> Iterator[Find]:
        best = self._search.best_statement(questions[0], passages)
        if best is not None:
            score = min(best.score, self._score(questions, [best.statement.said]))
            yield Find(best.statement.said, score, best.statement)

    def _questions(self, asked: str) -> list[Question]:
        """With and without the words that only say of what kind the thing is."""
        texts = dict.fromkeys([asked, without_kinds(asked)])
        return [self._search.question(text) for text in texts if text]

    def _score(self, questions: Sequence[Question], texts: Sequence[str]) -> float:
        """Near to every question, by one text or another."""
        return min(max(self._search.score(one, text) for text in texts) for one in questions)


def _rank(find: Find) -> tuple[bool, float]:
    return not find.is_named, -find.score


def _contexts(text: str, mentions: Sequence[Mention]) -> Iterator[list[str]]:
    """For each mention what stands before it, and that with the mention. Where there are several,
    each belongs to the words between it and the one before."""
    start = 0
    for mention in mentions:
        before = text[start : mention.start].strip(_AROUND_LABELS)
        with_it = text if len(mentions) == 1 else text[start : mention.end].strip()
        yield [part for part in (before, with_it) if part] or [text]
        start = mention.end


def _assembled(member: Member, finds: dict[str, Find], missing: list[str]) -> Any:
    """What was not found is null where that is allowed, left out where it may be, and else
    missing."""
    if member.properties is None:
        find = finds.get(member.pointer)
        return find.value if find else _without(member, missing)
    if member.path and not any(one.pointer in finds for one in values_of(member)):
        return _without(member, missing)
    inner = {one.path[-1]: _assembled(one, finds, missing) for one in member.properties}
    return {name: value for name, value in inner.items() if value is not _ABSENT}


def _without(member: Member, missing: list[str]) -> Any:
    if member.allows_null:
        return None
    if member.is_required:
        missing.append(member.pointer)
    return _ABSENT
