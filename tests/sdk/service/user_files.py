"""Files as a team would write them. `# E: text` marks a line with an error that mypy must find."""

GOOD = """
import asyncio
import hashlib
import io
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from lucius_sdk import (
    Artifact,
    ErrorCode,
    NonRetryableError,
    RetryableError,
    Service,
    StepCancelled,
    StepContext,
    __version__,
)


class OcrPayload(BaseModel):
    languages: list[str] = []
    dpi: int = 300


service = Service("ocr")


@service.on_start
def load_model() -> None:
    print(__version__)


@service.on_stop
async def unload_model() -> None:
    await asyncio.sleep(0)


@service.step("OCR", payload=OcrPayload)
def execute(ctx: StepContext[OcrPayload]) -> None:
    dpi: int = ctx.payload.dpi
    with ctx.input.open() as document:
        first: bytes = document.read(dpi)
    if not first:
        raise NonRetryableError(ErrorCode.INPUT_INVALID, "the document is empty")
    ctx.progress(0.5, "half")
    ctx.check()
    artifact = ctx.workspace.write("output.txt", first.hex())
    uri: str = ctx.publish(artifact)
    ctx.log.info("published", extra={"uri": uri, "left": ctx.seconds_left() * 2})


@service.step("PLAIN")
async def plain(ctx: StepContext[dict[str, Any]]) -> Artifact:
    try:
        text = await ctx.prior.find("OCR", "output.txt").aread()
    except StepCancelled:
        raise
    except ConnectionError as error:
        raise RetryableError(message="away") from error
    return await ctx.workspace.awrite("copy.txt", text)


@service.step("PAGES", payload=OcrPayload)
def pages(ctx: StepContext[OcrPayload]) -> Iterator[Artifact]:
    for language in ctx.payload.languages:
        yield ctx.workspace.write(f"{language}.txt", "")


@service.step("DIGEST")
def digest(ctx: StepContext[dict[str, Any]]) -> None:
    with ctx.input.open() as document:
        found: str = hashlib.file_digest(document, "sha256").hexdigest()
    with io.TextIOWrapper(ctx.prior.find("OCR", "output.txt").open(), encoding="utf-8") as lines:
        ctx.workspace.write("lines.txt", f"{found} {len(list(lines))}")


@service.step("ANY", payload=OcrPayload)
async def any_model(ctx: StepContext[BaseModel]) -> list[Artifact]:
    return []


def test_execute(ctx: StepContext[OcrPayload]) -> None:
    execute(ctx)
    asyncio.run(any_model(ctx))


if __name__ == "__main__":
    service.run()
"""

BAD = """
from pydantic import BaseModel

from lucius_sdk import Service, StepContext
from lucius_sdk import Servise  # E: has no attribute "Servise"


class OcrPayload(BaseModel):
    dpi: int = 300


class OtherPayload(BaseModel):
    depth: int = 3


service = Service("ocr")


@service.step("OCR", payload=OcrPayload)
def execute(ctx: StepContext[OcrPayload]) -> None:
    print(ctx.payload.dip)  # E: "OcrPayload" has no attribute "dip"
    dpi: str = ctx.payload.dpi  # E: Incompatible types in assignment
    ctx.workspace.write(7, b"")  # E: Argument 1 to "write"
    ctx.canceled  # E: "StepContext[OcrPayload]" has no attribute "canceled"
    ctx.attempt_no = 2  # E: Property "attempt_no" defined in "StepContext" is read-only


@service.step("OTHER", payload=OcrPayload)  # E: incompatible type
def other(ctx: StepContext[OtherPayload]) -> None: ...


@service.step("UNTYPED")  # E: incompatible type
def without_model(ctx: StepContext[OcrPayload]) -> None: ...


@service.step("NUMBER", payload=OcrPayload)  # E: cannot be "int"
def number(ctx: StepContext[OcrPayload]) -> int:
    return 3


@service.step("MODEL", payload=dict)  # E: cannot be "dict[
def dictionary(ctx: StepContext[dict]) -> None: ...  # E: Missing type arguments


@service.on_start  # E: cannot be
def load(path: str) -> None: ...
"""
