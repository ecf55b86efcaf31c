"""Every guarantee of CONTRIBUTING has a proof in `make test`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| [A-Z].* \| (`(?:contract_)?tests/.*`) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def proofs() -> list[str]:
    rows = ROW.findall((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    return [proof for row in rows for proof in re.findall(r"`([^`]+)`", row)]


def test_every_guarantee_has_a_proof_in_make_test(proofs: list[str]) -> None:
    assert len(proofs) > 30
    files = sorted({proof.partition("::")[0] for proof in proofs})
    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files],
        cwd=ROOT,
        env={**os.environ, "TESTS_TIER": "test"},
        capture_output=True,
        text=True,
        check=False,
    )
    names = collected.stdout.splitlines()
    parts = {part for name in names for part in (name, name.partition("[")[0], name.split("::")[0])}
    assert set(proofs) - parts == set(), collected.stderr
