"""Variables that somebody set and that change nothing."""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

from lucius_settings.info import SettingInfo, Use

PREFIX = "LUCIUS_"


def idle(table: Iterable[SettingInfo], environ: Mapping[str, str]) -> Iterator[str]:
    for info in table:
        if info.use is Use.IDLE and environ.get(info.variable, "").strip():
            yield f"{info.variable} changes nothing. {info.meaning}"


def unknown(table: Iterable[SettingInfo], environ: Mapping[str, str]) -> Iterator[str]:
    known = [info.variable.removeprefix(PREFIX) for info in table]
    for variable in sorted(environ):
        name = variable.removeprefix(PREFIX)
        if variable.startswith(PREFIX) and name not in known:
            yield f"{variable} is not known and changes nothing{_hint(name, known)}"


def _hint(name: str, known: Iterable[str]) -> str:
    close = get_close_matches(name, known, 1)
    return f"; did you mean {PREFIX}{close[0]}?" if close else ""
