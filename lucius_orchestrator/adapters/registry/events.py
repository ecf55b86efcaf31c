"""What the logger `lucius_orchestrator.registry` tells, as data."""

from lucius_outbox.telemetry import EventInfo

EVENTS: tuple[EventInfo, ...] = (
    EventInfo("registry.loaded", "INFO", ("protocols",), "A set of protocols is in force."),
    EventInfo(
        "registry.refused",
        "ERROR",
        ("problems",),
        "A reload found problems; the last good set stays. Told again only when they change.",
    ),
    EventInfo(
        "registry.away",
        "WARNING",
        ("error",),
        "App Configuration does not answer; the last good set stays. Told again only when the"
        " reason changes.",
    ),
    EventInfo("registry.back", "INFO", (), "App Configuration answers again."),
    EventInfo(
        "registry.unwatched",
        "WARNING",
        ("sentinel",),
        "There is no sentinel: until there is one, no change of the entries is taken up.",
    ),
    EventInfo(
        "registry.copy_used",
        "WARNING",
        ("read_at",),
        "The start could not use App Configuration: what was read from it then is in force.",
    ),
    EventInfo(
        "registry.copy_failed",
        "WARNING",
        ("error",),
        "The copy for a start without App Configuration could not be written or used.",
    ),
)
