"""What an operator sees of who is let in, as data. Records of `lucius_orchestrator.security`."""

from lucius_outbox.telemetry import EventInfo

EVENTS: tuple[EventInfo, ...] = (
    EventInfo(
        "keys.unreadable",
        "ERROR",
        ("path", "reason"),
        "The file of API keys cannot be read; until it can, every caller is refused.",
    ),
    EventInfo(
        "issuer.unavailable",
        "WARNING",
        ("reason",),
        "The keys of the JWT issuer could not be fetched; the last copy counts for an hour.",
    ),
)
