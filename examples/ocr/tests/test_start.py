"""A wrong installation or setting is found before the first job."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ocr_service.execute import check_installation
from ocr_service.limits import Limits
from ocr_service.settings import Layout, Settings

FOLDER = Path(__file__).parents[1]


def test_an_installation_that_is_right_starts() -> None:
    check_installation()


def test_without_language_data_the_start_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OCR_TESSDATA", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match=r"no language data .* set OCR_TESSDATA to"):
        check_installation()


def test_a_process_without_language_data_ends_with_a_sentence(tmp_path: Path) -> None:
    settings = {
        "OCR_TESSDATA": str(tmp_path),
        "LUCIUS_WORKSPACE_ROOT": str(tmp_path),
        "LUCIUS_DEDUP_STORE": f"sqlite://{tmp_path}/dedup.db",
        "LUCIUS_HEALTH_PORT": "0",
    }
    ended = subprocess.run(
        [sys.executable, "-m", "ocr_service"],
        cwd=FOLDER,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 3
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("ocr cannot start: ")
    assert f"there is no language data (*.traineddata) in {tmp_path}" in last


def test_without_settings_there_are_usual_ones() -> None:
    settings = Settings.of({"OCR_MAX_PAGES": ""})
    assert (settings.layout, settings.limits) == (Layout.ROWS, Limits())
    assert (settings.tessdata / "eng.traineddata").is_file()


def test_settings_are_read() -> None:
    settings = Settings.of(
        {
            "OCR_TESSDATA": "/data",
            "OCR_LAYOUT": "columns",
            "OCR_MAX_BYTES": "1",
            "OCR_MAX_PAGES": "2",
            "OCR_MAX_PIXELS": "3",
        }
    )
    assert settings == Settings(Path("/data"), Layout.COLUMNS, Limits(1, 2, 3))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OCR_MAX_BYTES", "200 MiB"),
        ("OCR_MAX_PAGES", "0"),
        ("OCR_MAX_PIXELS", "-1"),
        ("OCR_MAX_PIXELS", "1e6"),
        ("OCR_LAYOUT", "diagonal"),
    ],
)
def test_a_setting_that_makes_no_sense_is_named(name: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be .*{value}"):
        Settings.of({name: value})
