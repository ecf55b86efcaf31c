"""The system properties that expressions know, by the names of the service."""

from servicebus_emulator.rules.errors import RuleError

# Subject is the newer name of what the language has always called Label.
_FIELDS = {
    "messageid": "message_id",
    "correlationid": "correlation_id",
    "to": "to",
    "replyto": "reply_to",
    "label": "subject",
    "subject": "subject",
    "sessionid": "session_id",
    "replytosessionid": "reply_to_session_id",
    "contenttype": "content_type",
    "partitionkey": "partition_key",
}
_SHOWN = (
    "MessageId, CorrelationId, To, ReplyTo, Label, Subject, SessionId, ReplyToSessionId,"
    " ContentType, PartitionKey"
)


def system_field(name: str, position: int) -> str:
    """The field of `Facts` that sys.<name> reads."""
    try:
        return _FIELDS[name.lower()]
    except KeyError:
        raise RuleError(
            f"sys.{name} at position {position} is not supported; these are: {_SHOWN}"
        ) from None
