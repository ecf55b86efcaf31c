"""The smallest service of the SDK that does something: it writes what it reads in upper case."""

import sys

from pydantic import BaseModel, ConfigDict

from lucius_sdk import Service, StepContext

service = Service()


class Payload(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ending: str = ""


@service.step("UPPER", payload=Payload)
def execute(ctx: StepContext[Payload]) -> None:
    text = ctx.input.read(limit=1_000_000).decode()
    ctx.publish(ctx.workspace.write("output.txt", text.upper() + ctx.payload.ending))


if __name__ == "__main__":
    sys.exit(service.run())
