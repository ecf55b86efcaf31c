"""Answers that stand in the document, word for word: nothing is written that is not there."""

from collections.abc import Callable
from typing import Any

from lucius_sdk import StepContext

from sis_service.answer_schema import Schema, problems
from sis_service.answers import Answer, Field, Place, answer_to, rounded
from sis_service.filling import Filled, Filler
from sis_service.forms import MOST_MEMBERS, FormTooLarge, form_of
from sis_service.payload import Prompt
from sis_service.search import PASSAGES, THRESHOLD, Passage, Search

NOTHING_NEAR = f"no statement of the document is near enough to the prompt ({THRESHOLD} is needed)"


class Extraction:
    """Looks for the statement that answers a prompt, or for the values of a form."""

    name = "extractive"

    def answer(self, ctx: StepContext[Any], prompt: Prompt, search: Search) -> Answer:
        passages = search.passages(search.question(prompt.prompt), PASSAGES)
        if prompt.answer_schema is None:
            return _statement(prompt, search, passages)
        return _form(prompt, prompt.answer_schema, search, passages, ctx.check)


def _statement(prompt: Prompt, search: Search, passages: list[Passage]) -> Answer:
    best = search.best_statement(search.question(prompt.prompt), passages)
    if best is None or best.score < THRESHOLD:
        score = rounded(best.score) if best else None
        return answer_to(prompt, passages, found=False, reason=NOTHING_NEAR, score=score)
    said = best.statement.said
    return answer_to(
        prompt,
        passages,
        found=True,
        answer=said if prompt.output == "text" else {"answer": said},
        score=rounded(best.score),
        source=Place.of(best.statement),
    )


def _form(
    prompt: Prompt,
    schema: Schema,
    search: Search,
    passages: list[Passage],
    check: Callable[[], None],
) -> Answer:
    try:
        form = form_of(schema)
    except FormTooLarge:
        too_large = f"the schema has more than {MOST_MEMBERS} members, or is nested too deep"
        return answer_to(prompt, passages, found=False, reason=too_large)
    filled = Filler(search, prompt.prompt, check).fill(form)
    reason = _what_is_wrong(filled, schema)
    scores = [find.score for find in filled.finds.values()]
    return answer_to(
        prompt,
        passages,
        found=reason is None,
        answer=filled.value if reason is None else None,
        reason=reason,
        score=rounded(min(scores)) if scores else None,
        fields=_fields(filled),
    )


def _what_is_wrong(filled: Filled, schema: Schema) -> str | None:
    if not filled.finds:
        return "nothing that the schema asks for was found in the document"
    if filled.missing:
        return f"required by the schema, and not found: {', '.join(filled.missing)}"
    (wrong,) = problems(schema, [filled.value])
    return f"what was found breaks the schema: {'; '.join(wrong)}" if wrong else None


def _fields(filled: Filled) -> dict[str, Field]:
    return {
        pointer: Field(value=find.value, score=rounded(find.score), source=Place.of(find.statement))
        for pointer, find in filled.finds.items()
    }
