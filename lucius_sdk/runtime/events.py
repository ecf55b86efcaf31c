"""What an operator reads of a service at work, as data. Records of the logger `lucius_sdk`."""

from lucius_outbox.telemetry import EventInfo
from lucius_sdk.logs import STEP_FIELDS

EVENTS: tuple[EventInfo, ...] = (
    EventInfo(
        "settings.remark", "WARNING", ("remark",), "A setting changes nothing, or is a risk."
    ),
    EventInfo("service.stopping", "INFO", ("grace",), "A signal came; nothing new is taken."),
    EventInfo("hook.raised", "ERROR", (), "A stop hook failed; the others are still called."),
    EventInfo(
        "step.ended",
        "INFO",
        (*STEP_FIELDS, "outcome", "code", "seconds"),
        "A directive was settled; `code` is of a failure, `seconds` how long the handler ran.",
    ),
    EventInfo(
        "step.broken",
        "ERROR",
        STEP_FIELDS,
        "A directive met an error of the SDK itself; its message comes again.",
    ),
    EventInfo(
        "handler.raised",
        "WARNING",
        ("code",),
        "A handler ended with an error that is none of the SDK's; the traceback is with it.",
    ),
    EventInfo(
        "directive.refused",
        "ERROR",
        ("message_id", "reason", "why"),
        "A message is no directive of this service; it was dead-lettered.",
    ),
    EventInfo(
        "message.unsettled",
        "INFO or WARNING",
        ("message_id", "error"),
        "The bus did not take the settlement of a message; if it comes again, it is settled then.",
    ),
    EventInfo(
        "lane.unreachable",
        "WARNING or ERROR",
        ("lane", "error"),
        "Nothing can be taken from a lane: the bus is away (WARNING), or refuses (ERROR).",
    ),
    EventInfo(
        "store.unavailable",
        "WARNING",
        ("error",),
        "The dedup store did not answer; it is asked again, or the claim lapses by itself.",
    ),
    EventInfo(
        "reply.broken",
        "ERROR",
        (),
        "An ACK or a HEARTBEAT could not be sent for a reason of the SDK; the work goes on.",
    ),
    EventInfo(
        "result.not_applied",
        "WARNING",
        ("jobId", "stepId", "verdict", "why"),
        "The orchestrator has decided about a RESULT, and did not apply it.",
    ),
    EventInfo(
        "result.adopted",
        "INFO",
        ("jobId", "stepId"),
        "A RESULT that another instance had stored and not reported was sent.",
    ),
)
"""`A or B` where the same event has several levels."""
