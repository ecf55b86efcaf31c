"""The step SIS: named prompts, answered from a document."""

import os

from lucius_sdk import Service, StepContext
from lucius_vectors import load_model

from sis_service.answers import Answer, Result, answer_to
from sis_service.engines import Engine, open_engine
from sis_service.payload import Payload
from sis_service.search import Search
from sis_service.settings import read_settings
from sis_service.source import read_source

RESULT = "result.json"

service = Service("sis")


@service.on_start
def check_installation() -> None:
    """A wrong setting, a missing package or a damaged model stops the start, and not a job."""
    read_settings(os.environ)
    load_model()


@service.step("SIS", payload=Payload)
def execute(ctx: StepContext[Payload]) -> None:
    source = read_source(ctx)
    with open_engine(read_settings(os.environ)) as engine:
        answers = _answers(ctx, engine, Search(source))
        result = Result(engine=engine.name, model=source.model.name, answers=answers)
    ctx.publish(ctx.workspace.write_json(RESULT, result))
    found = sum(answer.found for answer in answers)
    ctx.log.info("prompts.answered", extra={"prompts": len(answers), "found": found})


def _answers(ctx: StepContext[Payload], engine: Engine, search: Search) -> list[Answer]:
    prompts, answers = ctx.payload.prompt_set, list[Answer]()
    for prompt in prompts:
        ctx.check()
        if search.is_empty:
            answers.append(answer_to(prompt, [], found=False, reason="the document has no text"))
        else:
            answers.append(engine.answer(ctx, prompt, search))
        ctx.progress(len(answers) / len(prompts), f"prompt {len(answers)} of {len(prompts)}")
    return answers
