"""Variables that somebody set and that change nothing."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from lucius_orchestrator.settings.info import Use
from lucius_orchestrator.settings.table import SETTINGS

_PREFIX = "LUCIUS_"
_KNOWN = {info.variable.removeprefix(_PREFIX): info for info in SETTINGS}


def idle(environ: Mapping[str, str]) -> Iterator[str]:
    for info in SETTINGS:
        if info.use is Use.IDLE and environ.get(info.variable, "").strip():
            yield f"{info.variable} changes nothing. {info.meaning}"


def unknown(environ: Mapping[str, str]) -> Iterator[str]:
    for variable in sorted(environ):
        name = variable.removeprefix(_PREFIX)
        if variable.startswith(_PREFIX) and name not in _KNOWN:
            yield f"{variable} is not known and changes nothing{_hint(name)}"


def _hint(name: str) -> str:
    close = get_close_matches(name, _KNOWN, 1)
    return f"; did you mean {_PREFIX}{close[0]}?" if close else ""
