"""PNG, JPEG and TIFF: how their pixels become a page, and what is refused."""

import io
import struct
import zlib
from collections.abc import Callable
from itertools import product

import pytest
from lucius_sdk.testing import StepRun, run_step
from PIL import Image, TiffImagePlugin

from ocr_service.execute import service

Picture = Callable[..., Image.Image]
Saved = Callable[..., bytes]

WORDS = "Invoice no. 417 of March"
ORIENTATION = 0x0112
UPRIGHT_BY = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""How a page has to be turned so that a viewer that knows its orientation shows it upright."""


def read(document: bytes, **payload: object) -> StepRun:
    return run_step(service, payload, document)


def refusal(document: bytes, **payload: object) -> tuple[str, str | None, str]:
    done = read(document, **payload)
    assert done.error
    return done.status, done.code, done.error.message


def text(document: bytes) -> str:
    done = read(document)
    assert done.status == "SUCCEEDED", done.error
    return done.text("output.txt")


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *product(["PNG"], ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"]),
        *product(["JPEG"], ["L", "RGB", "CMYK"]),
        *product(["TIFF"], ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16"]),
    ],
)
def test_pixels_of_every_common_kind_are_read(
    picture: Picture, saved: Saved, kind: str, mode: str
) -> None:
    page = picture(WORDS)
    if mode == "I;16":
        levels = b"".join(struct.pack("<H", 0x3000 + grey * 0x80) for grey in page.tobytes())
        page = Image.frombytes(mode, page.size, levels)
    assert text(saved(page.convert(mode), kind)) == WORDS + "\n"


def test_transparent_paper_is_white(picture: Picture, saved: Saved) -> None:
    ink = picture(WORDS).point(lambda grey: 255 - grey)
    page = Image.new("RGBA", ink.size, (0, 0, 0, 0))
    page.putalpha(ink)
    assert text(saved(page, "PNG")) == WORDS + "\n"


def test_a_tiff_of_any_order_and_size_is_told_by_its_beginning(
    picture: Picture, saved: Saved
) -> None:
    page = picture(WORDS)
    assert text(saved(page, "TIFF", big_tiff=True)) == WORDS + "\n"
    assert text(_big_endian(page)) == WORDS + "\n"


@pytest.mark.parametrize("compression", ["raw", "group4", "tiff_lzw", "tiff_adobe_deflate"])
def test_each_frame_of_a_tiff_is_a_page(picture: Picture, saved: Saved, compression: str) -> None:
    first, second, third = (picture(f"This is page {n}").convert("1") for n in (1, 2, 3))
    document = saved(
        first, "TIFF", save_all=True, append_images=[second, third], compression=compression
    )
    assert text(document) == "This is page 1\n\fThis is page 2\n\fThis is page 3\n"
    done = read(document, pages=[3, 2])
    assert done.text("output.txt") == "This is page 2\n\fThis is page 3\n"


@pytest.mark.parametrize("orientation", UPRIGHT_BY)
def test_a_photo_is_turned_as_its_camera_says(
    picture: Picture, saved: Saved, orientation: int
) -> None:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    assert text(saved(_turned(picture(WORDS), orientation), "JPEG", exif=exif)) == WORDS + "\n"


@pytest.mark.parametrize("orientation", [3, 6])
def test_each_frame_is_turned_as_it_says(picture: Picture, saved: Saved, orientation: int) -> None:
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[ORIENTATION] = orientation
    first, second = (_turned(picture(f"This is page {n}"), orientation) for n in (1, 2))
    document = saved(first, "TIFF", save_all=True, append_images=[second], tiffinfo=tags)
    assert text(document) == "This is page 1\n\fThis is page 2\n"


def test_other_pictures_inside_a_photo_are_no_pages(picture: Picture, saved: Saved) -> None:
    frames = {"save_all": True, "append_images": [picture("A preview")]}
    assert text(saved(picture(WORDS), "MPO", **frames)) == WORDS + "\n"
    assert text(saved(picture(WORDS), "PNG", **frames)) == WORDS + "\n"


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
def test_a_file_that_breaks_off_is_refused_for_good(
    picture: Picture, saved: Saved, kind: str
) -> None:
    whole = saved(picture(WORDS), kind)
    for length in (12, 40, len(whole) // 2, len(whole) * 9 // 10):
        refused = refusal(whole[:length])
        assert refused == ("FAILED_FINAL", "INPUT_INVALID", f"the {kind} is damaged")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF"])
def test_only_a_beginning_is_refused_for_good(saved: Saved, kind: str) -> None:
    beginning = saved(Image.new("L", (9, 9)), kind)[:8]
    refused = refusal(beginning + bytes(range(256)) * 9)
    assert refused == ("FAILED_FINAL", "INPUT_INVALID", f"the {kind} is damaged")


def test_a_bomb_is_refused_before_it_is_decoded() -> None:
    done = refusal(_bomb(60_000, 60_000))
    assert done == ("FAILED_FINAL", "INPUT_TOO_LARGE", "the PNG has more pixels than can be read")


@pytest.mark.parametrize(
    ("size", "told"), [((9_000, 9_000), "70000000 in all"), ((40_000, 100), "32767 a side")]
)
def test_a_page_over_the_limit_is_refused_before_it_is_decoded(
    size: tuple[int, int], told: str
) -> None:
    status, code, message = refusal(_bomb(*size))
    assert (status, code) == ("FAILED_FINAL", "INPUT_TOO_LARGE")
    assert message.startswith("page 1 has")
    assert told in message


def test_too_many_frames_are_refused_for_good(
    picture: Picture, saved: Saved, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = [picture(WORDS)] * 3
    document = saved(frames[0], "TIFF", save_all=True, append_images=frames[1:])
    monkeypatch.setenv("OCR_MAX_PAGES", "3")
    assert read(document, pages=[1]).status == "SUCCEEDED"
    monkeypatch.setenv("OCR_MAX_PAGES", "2")
    assert refusal(document)[:2] == ("FAILED_FINAL", "INPUT_TOO_LARGE")


def test_measurements_are_no_page(saved: Saved) -> None:
    status, code, message = refusal(saved(Image.new("F", (50, 50)), "TIFF"))
    assert (status, code) == ("FAILED_FINAL", "INPUT_INVALID")
    assert message == "page 1 has pixels of a kind that is not read; grey and colours are"


def test_a_speck_is_a_page_without_text(saved: Saved) -> None:
    assert refusal(saved(Image.new("L", (1, 1)), "PNG"))[1] == "OCR_NO_TEXT"


def _big_endian(page: Image.Image) -> bytes:
    """A TIFF as machines with the other order of bytes write it; its pixels come after 128."""
    tags = {
        256: page.width,
        257: page.height,
        258: 8,
        259: 1,
        262: 1,
        273: 128,
        277: 1,
        278: page.height,
    }
    tags[279] = page.width * page.height
    entries = b"".join(struct.pack(">HHII", tag, 4, 1, value) for tag, value in tags.items())
    directory = struct.pack(">2sHIH", b"MM", 42, 8, len(tags)) + entries + bytes(4)
    return directory.ljust(128, b"\0") + page.tobytes()


def _turned(page: Image.Image, orientation: int) -> Image.Image:
    how = UPRIGHT_BY[orientation]
    return page if how is None else page.transpose(how)


def _bomb(width: int, height: int) -> bytes:
    """A PNG whose header promises more than it has."""
    file = io.BytesIO()
    Image.new("1", (1, 1)).save(file, "PNG")
    content = bytearray(file.getvalue())
    content[16:24] = struct.pack(">II", width, height)
    content[29:33] = struct.pack(">I", zlib.crc32(content[12:29]))
    return bytes(content)
