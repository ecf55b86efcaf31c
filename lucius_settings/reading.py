"""From environment variables to values, or to what is wrong with them.

A variable that is empty, or blank, counts as not set.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lucius_settings.info import SettingInfo, Use
from lucius_settings.kinds import Refused
from lucius_settings.problems import SettingProblem, SettingsError

Values = dict[str, Any]
"""By field. One whose variable could not be read is not there: it was set, but nobody knows to
what."""

# Half surrogates stand for bytes of the environment that are no UTF-8.
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def read_all(
    table: Iterable[SettingInfo], environ: Mapping[str, str]
) -> tuple[Values, list[SettingProblem]]:
    values: Values = {}
    problems: list[SettingProblem] = []
    for info in table:
        if info.use is not Use.READ:
            continue
        try:
            value = _read(info, environ)
        except Refused as refused:
            problems.append(SettingProblem(info.variable, str(refused)))
        else:
            if info.field is not None:
                values[info.field] = value
    return values, problems


def in_order(table: Iterable[SettingInfo], problems: Iterable[SettingProblem]) -> SettingsError:
    """All problems at once, in the order of the table."""
    places = {info.variable: place for place, info in enumerate(table)}
    return SettingsError(sorted(problems, key=lambda problem: places[problem.variable]))


def _read(info: SettingInfo, environ: Mapping[str, str]) -> Any:
    text = environ.get(info.variable, "").strip() or info.default
    if text is None:
        return info.kind.empty
    if _UNPRINTABLE.search(text):
        raise Refused(f"holds characters that cannot be printed; must be {info.kind.rule}")
    return info.kind.read(text)
