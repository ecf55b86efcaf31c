"""A platform service whose work is nothing: what is left is what the SDK costs.

LUCIUS_SERVICE=ocr python -m benchmarks.noop_service
"""

import os
from typing import Any

from lucius_sdk import Service, StepContext


def noop_service(name: str) -> Service:
    """It does the steps of the type that has its name."""
    service = Service(name)

    @service.step(name.upper())
    def execute(ctx: StepContext[dict[str, Any]]) -> None:
        pass

    return service


if __name__ == "__main__":
    noop_service(os.environ["LUCIUS_SERVICE"]).run()
