"""The reference pages of the environment variables."""

from collections.abc import Iterable, Iterator, Mapping

from docs.generator.markdown import page, table
from lucius_orchestrator.settings.table import GROUPS
from lucius_sdk.settings.table import GROUPS as SERVICE_GROUPS
from lucius_settings.info import SettingInfo, Use

_RULES = (
    "A variable that is empty counts as not set; blanks around a value are dropped. A process that"
    " finds something wrong does not start, and names all that is wrong at once. A variable that"
    " begins with `LUCIUS_` and that nobody knows is warned about."
)


def settings_page() -> str:
    return page(
        "Settings",
        "Environment variables of the orchestrator. Nothing set is a working default: everything"
        " on one machine, for this machine alone. `lucius config` prints what is in force, with"
        " secrets masked. Those of a service are on [their own page](sdk-settings.md).",
        _RULES,
        *_sections(GROUPS),
    )


def service_settings_page() -> str:
    return page(
        "Settings of a service",
        "Environment variables of a service that is built with the SDK. Nothing set is a working"
        " default beside a `lucius up` that was started in the same folder. Those of the"
        " orchestrator are on [their own page](settings.md); a service passes over them.",
        _RULES,
        *_sections(SERVICE_GROUPS),
    )


def _sections(groups: Mapping[str, tuple[SettingInfo, ...]]) -> Iterator[str]:
    for title, group in groups.items():
        yield f"## {title}"
        yield _section(group)


def _section(group: tuple[SettingInfo, ...]) -> str:
    if all(info.use is Use.READ for info in group):
        return table(("variable", "allowed", "default", "meaning"), _read(group))
    return table(("variable", "meaning"), [(f"`{info.variable}`", info.meaning) for info in group])


def _read(group: Iterable[SettingInfo]) -> Iterator[tuple[str, ...]]:
    for info in group:
        default = info.unset if info.default is None else f"`{info.default}`"
        remark = " Secret." if info.secret else ""
        yield f"`{info.variable}`", info.kind.rule, default, info.meaning + remark
