"""Files that were damaged at random are read or refused for good; nothing else happens."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from tempfile import TemporaryFile

import pytest
from lucius_sdk import NonRetryableError
from PIL import Image

from ocr_service.document import open_document
from ocr_service.limits import Limits

ROUNDS = 250
SIGNATURE = 8

Picture = Callable[..., Image.Image]
Saved = Callable[..., bytes]


@pytest.fixture(scope="session")
def whole(picture: Picture, saved: Saved, documents: Path) -> dict[str, bytes]:
    page = picture("Words", (200, 100), 30)
    frames = {"save_all": True, "append_images": [page.convert("1")]}
    return {
        "PNG": saved(page, "PNG"),
        "JPEG": saved(page.convert("RGB"), "JPEG", progressive=True),
        "TIFF": saved(page.convert("1"), "TIFF", compression="group4", **frames),
        "BigTIFF": saved(page, "TIFF", big_tiff=True),
        "PDF": (documents / "invoice.pdf").read_bytes(),
        "scan": saved(page, "PDF"),
    }


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "BigTIFF", "PDF", "scan"])
def test_damage_at_random_is_survived(whole: dict[str, bytes], kind: str) -> None:
    random = Random(kind)
    outcomes = {outcome(damaged(whole[kind], random)) for _ in range(ROUNDS)}
    assert {"read", "INPUT_INVALID"} <= outcomes <= {"read", "INPUT_INVALID", "INPUT_TOO_LARGE"}


def outcome(content: bytes) -> str:
    try:
        read(content)
    except NonRetryableError as refusal:
        return refusal.code
    return "read"


def read(content: bytes) -> None:
    """Up to where Tesseract would begin."""
    with TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        with open_document(file, 72, Limits()) as document:
            for number in range(1, document.page_count + 1):
                document.page(number)


def damaged(content: bytes, random: Random) -> bytes:
    """By its first bytes it is still of its kind. What steers a reader stands near them or near the
    end, so most of the damage is there."""
    spoilt = bytearray(content)
    for _ in range(random.choice((1, 2, 8))):
        near = random.randrange(random.choice((100, len(spoilt) - SIGNATURE)))
        place = random.choice((SIGNATURE + near, len(spoilt) - 1 - near))
        place = max(place, SIGNATURE)
        spoilt[place : place + 1] = random.choice((b"\0", b"\xff", b"", random.randbytes(1)))
    return bytes(spoilt)
