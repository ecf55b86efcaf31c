"""`lucius demo --chaos`: a service is killed before the eyes of whoever watches."""

import json
from pathlib import Path

import pytest

from tests.flow.test_demo import DEADLINE, left_running, start
from tests.runner.deadlines import time_limit

pytestmark = [pytest.mark.check, time_limit(300)]


def test_a_kill_costs_time_and_neither_the_job_nor_an_attempt(tmp_path: Path) -> None:
    demo = start(tmp_path, "--chaos", "--json")
    out, err = demo.communicate(timeout=DEADLINE)
    assert demo.returncode == 0, err
    job = json.loads(out)["job"]
    assert (job["state"], job["attempts_total"]) == ("SUCCEEDED", 3)
    first = job["steps"][0]["artifacts"][0]["uri"]
    assert "/ocr/1/~2/" in first, "a second run took over"
    assert "killing ocr" in err
    assert "in attempt 1 of 3" in err
    assert left_running(tmp_path) == []
