"""What a document costs does not grow with its length."""

import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from lucius_sdk.workspace_io import Input, LocalStorage
from PIL import Image

from ocr_service.limits import Limits
from ocr_service.spool import spooled

FOLDER = Path(__file__).parents[1]
MIB = 1024 * 1024
PAGE = 3.7
"""MiB of an A4 page at 200 dpi, a byte for each pixel."""

SMALL: dict[str, dict[str, str]] = {"PDF": {}, "TIFF": {"compression": "group4"}}
"""The test holds the document in memory, so it should be small."""

READ_AND_MEASURE = """
import resource
import sys
from pathlib import Path

from lucius_sdk.testing import run_step
from ocr_service.execute import service

done = run_step(service, {}, Path(sys.argv[1]).read_bytes())
assert done.status == "SUCCEEDED", done.error
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def peak(document: Path) -> float:
    """MiB of a process that reads the document."""
    ended = subprocess.run(
        [sys.executable, "-c", READ_AND_MEASURE, document],
        env=os.environ | {"PYTHONPATH": str(FOLDER)},
        capture_output=True,
        text=True,
        timeout=100,
        check=True,
    )
    return float(ended.stdout)


@pytest.mark.parametrize("kind", ["PDF", "TIFF"])
def test_the_peak_does_not_grow_with_the_pages(
    tmp_path: Path, picture: Callable[..., Image.Image], kind: str
) -> None:
    page = picture("A short page", (1654, 2339)).convert("1")
    peaks = {}
    for count in (3, 23):
        document = tmp_path / f"{count}.{kind.lower()}"
        others = [page] * (count - 1)
        page.save(
            document, kind, save_all=True, append_images=others, resolution=200, **SMALL[kind]
        )
        peaks[count] = peak(document)
    print(", ".join(f"{kind} of {count} pages: {peaks[count]:.0f} MiB" for count in peaks))
    assert peaks[23] - peaks[3] < 5 * PAGE, "20 more pages would be 74 MiB"


def test_the_input_is_never_in_memory_as_a_whole(tmp_path: Path) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(100 * MIB)
    tracemalloc.start()
    try:
        with spooled(Input(LocalStorage(tmp_path), large.as_uri()), Limits()) as copy:
            assert copy.seek(0, os.SEEK_END) == 100 * MIB
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 2 * MIB
