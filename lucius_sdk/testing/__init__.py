"""For the tests of a service: one directive in memory, and time that stands still.

from lucius_sdk.testing import run_step

def test_it_shouts() -> None:
    done = run_step(service, {"loud": True}, input=b"hello")
    assert done.text("output.txt") == "HELLO"
"""

from lucius_sdk.testing.clock import FakeClock
from lucius_sdk.testing.replies import RecordedReplies
from lucius_sdk.testing.running import StepRun, arun_step, run_step

__all__ = ["FakeClock", "RecordedReplies", "StepRun", "arun_step", "run_step"]
