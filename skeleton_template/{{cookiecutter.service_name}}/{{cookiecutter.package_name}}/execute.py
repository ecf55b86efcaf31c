"""The work of one step."""

from lucius_sdk import ErrorCode, NonRetryableError, Service, StepContext

from {{ cookiecutter.package_name }}.payload import Payload

MOST_BYTES = 10_000_000

service = Service("{{ cookiecutter.service_name }}")


@service.step("{{ cookiecutter.step_type }}", payload=Payload)
def execute(ctx: StepContext[Payload]) -> None:
    text = ctx.input.read(limit=MOST_BYTES).decode()
    words = [word for word in text.split() if len(word) >= ctx.payload.shortest]
    if not words:
        raise NonRetryableError(ErrorCode.INPUT_INVALID, "the document has no words to count")
    counted = {"words": len(words), "different": len({word.lower() for word in words})}
    ctx.publish(ctx.workspace.write_json("words.json", counted))
