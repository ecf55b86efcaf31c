"""The EMBEDDING step: cuts a text into chunks, and writes a vector for each."""

import os

from lucius_sdk import ErrorCode, NonRetryableError, Service, StepContext
from lucius_vectors import DEFAULT_MODEL, Header, Model, UnknownModel, load_model

from embedding_service.payload import Payload
from embedding_service.plan import Plan
from embedding_service.settings import read_settings
from embedding_service.source import read_text
from embedding_service.vectors import embedded, write_apart, write_inline

service = Service("embedding")


@service.on_start
def load_default_model() -> None:
    """A wrong setting, a missing package or a damaged model stops the start."""
    load_model(DEFAULT_MODEL, read_settings(os.environ).threads)


@service.step("EMBEDDING", payload=Payload)
def execute(ctx: StepContext[Payload]) -> None:
    settings = read_settings(os.environ)
    model = _model_for(ctx.payload, settings.threads)
    text = read_text(ctx, settings.max_characters)
    size, overlap = ctx.payload.chunk_size, ctx.payload.shared
    plan = Plan.make(text, size, overlap, model, ctx.check)
    header = Header(model.name, model.dimension, size, overlap, len(text))
    batches = embedded(ctx, model, plan)
    if len(plan) <= settings.json_chunks:
        document = write_inline(ctx, header, batches)
    else:
        document = write_apart(ctx, header, len(plan), batches)
    ctx.publish(document)
    ctx.log.info("text.embedded", extra={"characters": len(text), "chunks": len(plan)})


def _model_for(payload: Payload, threads: int) -> Model:
    try:
        model = load_model(payload.model, threads)
    except UnknownModel as error:
        raise NonRetryableError("EMBEDDING_MODEL_UNKNOWN", str(error)) from error
    if payload.chunk_size > model.max_tokens:
        raise NonRetryableError(
            ErrorCode.PAYLOAD_INVALID,
            f"/payload/chunk_size Input should be at most {model.max_tokens}:"
            f" {model.name} takes no more tokens at once",
        )
    return model
