"""Several documents at once, in one process."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from PIL import Image

from ocr_service.raster import Raster
from ocr_service.recognition import Recognizer
from ocr_service.settings import Settings

FOLDER = Path(__file__).parents[1]

READ_AT_ONCE = """
import resource
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lucius_sdk.testing import run_step
from ocr_service.execute import service

# Without its lock PDFium may ask for all the memory that there is.
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))

def read(_):
    return run_step(service, {"dpi": 72}, document).files["output.txt"]

document = Path(sys.argv[1]).read_bytes()
with ThreadPoolExecutor(8) as pool:
    texts = set(pool.map(read, range(24)))
assert len(texts) == 1, "they differ"
"""


def test_documents_that_are_read_at_once_do_not_disturb_each_other(
    tmp_path: Path, pdf: Callable[..., bytes], picture: Callable[..., Image.Image]
) -> None:
    lines = "\n".join(f"This is line {n} of a page with a text layer." for n in range(20))
    document = tmp_path / "document.pdf"
    document.write_bytes(pdf(*[lines] * 30, picture("A scan in between", (820, 1160)), None))
    ended = subprocess.run(
        [sys.executable, "-c", READ_AT_ONCE, document],
        env=os.environ | {"PYTHONPATH": str(FOLDER)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr


def test_other_threads_go_on_while_a_page_is_read(picture: Callable[..., Image.Image]) -> None:
    """Else no lock on a message would be renewed meanwhile."""
    page = picture("\n".join(["The quick brown fox jumps over the lazy dog"] * 15), (1200, 1200))
    raster = Raster(page.tobytes(), *page.size, page.width, 200)
    settings = Settings.of({})
    is_read, turns = threading.Event(), []

    def take_turns() -> None:
        while not is_read.wait(0.001):
            turns.append(1)

    with Recognizer(settings.tessdata, ["eng"], settings.layout) as recognizer:
        other = threading.Thread(target=take_turns)
        other.start()
        try:
            found = recognizer.read(raster)
        finally:
            is_read.set()
            other.join()
    assert "lazy dog" in found.text
    assert len(turns) > 20
