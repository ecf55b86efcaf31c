"""However large a file is, a client holds a chunk of it for each thread."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.artifacts.client.server import KEY, TENANT, Server
from tests.runner.deadlines import seconds

SIZE = 256 * 1024 * 1024
MOST = 24 * 1024 * 1024
PROBE = """
import re, sys
from pathlib import Path
from lucius_artifacts.client import ArtifactsClient

def peak():
    # Not the usage that the kernel reports at the end: that begins with the parent's.
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) * 1024

url, key, tenant, path, small = sys.argv[1:]
with ArtifactsClient(url, key) as client:
    client.upload(Path(small), tenant)
    before = peak()
    done = client.upload(Path(path), tenant)
    with client.open(done.uri, tenant) as stream:
        while stream.read(1024 * 1024):
            pass
    print(peak() - before, done.length)
"""


@pytest.mark.check
def test_a_large_file_goes_there_and_back_with_little_memory(
    server: Server, tmp_path: Path
) -> None:
    path, small = tmp_path / "sparse", tmp_path / "small"
    path.touch()
    os.truncate(path, SIZE)
    small.write_bytes(b"small")
    command = [sys.executable, "-c", PROBE, server.url, KEY, TENANT, str(path), str(small)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=seconds(100))
    grown, length = map(int, run.stdout.split())
    assert length == SIZE
    assert grown < MOST
