"""Documents that cannot be worked on, and nothing else is held up by them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lucius_cli.demo.places import Places
from lucius_cli.demo.stack import Stack
from tests.flow.flow import SIS, connected, states
from tests.runner.deadlines import time_limit

pytestmark = time_limit(240)

PAYLOAD = {"ocr": {}, "embedding": {}, "sis": SIS}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, documents: Path) -> Path:
    """A folder of documents, some of them bad."""
    folder = tmp_path_factory.mktemp("desk")
    whole = (documents / "invoice-scan.pdf").read_bytes()
    (folder / "damaged.pdf").write_bytes(whole[:200] + whole[-400:])
    (folder / "empty.pdf").touch()
    (folder / "letter.pdf").write_bytes(b"PK\x03\x04 this is no PDF")
    shutil.copy(documents / "invoice.pdf", folder / "good.pdf")
    return folder


@pytest.fixture(scope="module")
def stack(
    places: Places, desk: Path, slow_engine: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    with Stack(places, tmp_path_factory.mktemp("stack"), desk, engine=slow_engine) as running:
        yield running


@pytest.mark.parametrize("name", ["damaged.pdf", "empty.pdf", "letter.pdf"])
async def test_a_poisoned_document_fails_its_job_at_once_and_the_next_one_is_served(
    stack: Stack, desk: Path, name: str
) -> None:
    async with connected(stack) as flow:
        poisoned = await flow.submit("OCR_EMBEDDING_SIS", desk / name, PAYLOAD)
        good = await flow.submit("OCR_EMBEDDING_SIS", desk / "good.pdf", PAYLOAD)
        failed = await flow.finished(poisoned)
        assert failed["state"] == "FAILED_FINAL"
        assert (failed["error"]["code"], failed["attempts_total"]) == ("INPUT_INVALID", 1)
        assert states(failed) == {
            "OCR": "FAILED_FINAL",
            "EMBEDDING": "CANCELLED",
            "SIS": "CANCELLED",
        }
        letters = [each for each in await flow.dead_letters() if each["jobId"] == poisoned]
        assert [each["code"] for each in letters] == ["INPUT_INVALID"]
        assert (await flow.finished(good))["state"] == "SUCCEEDED"


async def test_a_document_that_is_not_there_fails_for_good(stack: Stack, desk: Path) -> None:
    async with connected(stack) as flow:
        job = await flow.submit("OCR", desk / "absent.pdf", {})
        failed = await flow.finished(job)
        assert (failed["state"], failed["error"]["code"]) == ("FAILED_FINAL", "INPUT_NOT_FOUND")
