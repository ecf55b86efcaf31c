"""The reference page of the environment variables."""

from collections.abc import Iterable, Iterator

from docs.generator.markdown import page, table
from lucius_orchestrator.settings.info import SettingInfo, Use
from lucius_orchestrator.settings.table import GROUPS


def settings_page() -> str:
    sections: list[str] = []
    for title, group in GROUPS.items():
        sections += [f"## {title}", _section(group)]
    return page(
        "Settings",
        "Environment variables of the orchestrator. Nothing set is a working default: everything"
        " on one machine, for this machine alone. `lucius config` prints what is in force, with"
        " secrets masked.",
        "A variable that is empty counts as not set; blanks around a value are dropped. A process"
        " that finds something wrong does not start, and names all that is wrong at once. A"
        " variable that begins with `LUCIUS_` and that nobody knows is warned about.",
        *sections,
    )


def _section(group: tuple[SettingInfo, ...]) -> str:
    if all(info.use is Use.READ for info in group):
        return table(("variable", "allowed", "default", "meaning"), _read(group))
    return table(("variable", "meaning"), [(f"`{info.variable}`", info.meaning) for info in group])


def _read(group: Iterable[SettingInfo]) -> Iterator[tuple[str, ...]]:
    for info in group:
        default = info.unset if info.default is None else f"`{info.default}`"
        remark = " Secret." if info.secret else ""
        yield f"`{info.variable}`", info.kind.rule, default, info.meaning + remark
