"""A service whose work takes a while; it writes down what it does.

python -m tests.flow.slow_service SECONDS FILE
"""

import sys
import time
from pathlib import Path
from typing import Any

from lucius_sdk import Service, StepContext


def slow_service(seconds: float, diary: Path) -> Service:
    service = Service("slow")

    @service.step("SLOW")
    def execute(ctx: StepContext[dict[str, Any]]) -> None:
        with diary.open("a", encoding="ascii") as lines:
            lines.write(f"{ctx.job_id} {ctx.attempt_no}\n")
        time.sleep(seconds)

    return service


if __name__ == "__main__":
    slow_service(float(sys.argv[1]), Path(sys.argv[2])).run()
