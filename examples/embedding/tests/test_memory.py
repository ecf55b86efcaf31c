"""Memory is bounded by a batch, and not by the document."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os
import tracemalloc
from embedding_service.execute import execute
from embedding_service.payload import Payload
from lucius_sdk import Service, StepContext
from lucius_sdk.testing import run_step

measured = Service("embedding")
peaks = []

@measured.step("EMBEDDING", payload=Payload)
def measure(ctx: StepContext[Payload]) -> None:
    tracemalloc.start()
    execute(ctx)
    peaks.append(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()

for json_chunks in "0", "2000":
    os.environ["EMBEDDING_JSON_CHUNKS"] = json_chunks
    for chunks in 1, 20, 900:
        text = b"lamp chair table door\\n\\n" * chunks
        done = run_step(measured, {"chunk_size": 4, "overlap": 0}, text)
        assert len(done.json("vectors.json")["chunks"]) == chunks, done.error
print(*peaks)
"""
VECTORS = 880 * 384 * 4
"""Bytes of the vectors that the larger document has more; as JSON they are three times as many."""


@pytest.fixture(scope="module")
def peaks() -> list[int]:
    """Of one chunk, which loads all that is needed, of 20 and of 900; first in two files, then in
    one."""
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "EMBEDDING_MAX_CHARACTERS": "40000",  # or the room for the input would hide the rest
    }
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environ, check=True, capture_output=True, text=True)
    return [int(peak) for peak in done.stdout.split()]


@pytest.mark.parametrize("first", [0, 3], ids=["two files", "one file"])
def test_45_times_the_chunks_take_no_more_memory(peaks: list[int], first: int) -> None:
    _, few, many = peaks[first : first + 3]
    assert many - few < VECTORS / 2
