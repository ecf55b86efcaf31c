"""What is in force, for somebody who asks."""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Literal, NamedTuple

from lucius_settings.info import SettingInfo, Use
from lucius_settings.secret import MASK


class EffectiveSetting(NamedTuple):
    """`value_masked` stands in brackets when it is a description and not a value."""

    variable: str
    value_masked: str
    source: Literal["set", "default"]
    meaning: str


def in_force(
    table: Iterable[SettingInfo],
    settings: object,
    environ: Mapping[str, str],
    masked: Callable[[str], str],
) -> list[EffectiveSetting]:
    """Every variable that is read, in the order of the table. `environ` says which were set,
    `masked` takes credentials out of values that are not secret as a whole, as addresses."""
    return [
        EffectiveSetting(
            info.variable,
            _value(info, settings, masked),
            "set" if environ.get(info.variable, "").strip() else "default",
            info.meaning,
        )
        for info in table
        if info.use is Use.READ
    ]


def _value(info: SettingInfo, settings: object, masked: Callable[[str], str]) -> str:
    if info.field is None:
        return info.default or info.unset
    value = attrgetter(info.field)(settings)
    if value == info.kind.empty:
        return f"({info.unset})"
    return MASK if info.secret else masked(str(info.kind.write(value)))
