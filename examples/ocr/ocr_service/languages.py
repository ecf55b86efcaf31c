"""Which languages Tesseract can read here."""

from collections.abc import Iterable
from pathlib import Path

from lucius_sdk import NonRetryableError

from ocr_service.refusals import LANGUAGE_UNKNOWN

_ENDING = ".traineddata"
_PLACES = ("", "script/")
_NOT_LANGUAGES = frozenset({"osd", "equ"})
"""Data of Tesseract that tells directions and formulas."""


def installed_languages(tessdata: Path) -> list[str]:
    """By the names of their files; a script has its folder in its name: `script/Latin`."""
    files = [file for place in _PLACES for file in tessdata.glob(f"{place}*{_ENDING}")]
    names = (file.relative_to(tessdata).as_posix().removesuffix(_ENDING) for file in files)
    return sorted(set(names) - _NOT_LANGUAGES)


def check_languages(wanted: Iterable[str], tessdata: Path) -> list[str]:
    """Those that were asked for, each once. A name is never handed to Tesseract unless there is
    data of that name: it is a part of a path."""
    installed = installed_languages(tessdata)
    unknown = [name for name in wanted if name not in installed]
    if unknown:
        raise NonRetryableError(
            LANGUAGE_UNKNOWN,
            f"there is no data for {_told(unknown)}; installed are {_told(installed)}",
        )
    return list(dict.fromkeys(wanted))


def _told(names: list[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
