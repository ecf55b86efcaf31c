"""Settings and counts of entities in the XML of Service Bus, both ways.

Each kind of entity is a table of elements in the order in which the service writes them. A
`Setting` is read and written; `Shown` is only written. What is sent for `Shown` is passed over, as
clients send back all that they got, except for features that are not here: asking for one is
refused, so that nobody takes it for granted.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit
from xml.etree.ElementTree import Element

from servicebus_emulator.administration.atom import SERVICE_BUS
from servicebus_emulator.administration.exchange import Refusal
from servicebus_emulator.administration.text import (
    escaped,
    read_boolean,
    read_number,
    write_boolean,
    write_time,
)
from servicebus_emulator.broker import (
    QueueDescription,
    SubscriptionDescription,
    TopicDescription,
)
from servicebus_emulator.durations import read_duration, write_duration

_COUNTS = "http://schemas.microsoft.com/netservices/2011/06/servicebus"
_STATES = ("Active", "Disabled", "SendDisabled", "ReceiveDisabled")


Description = QueueDescription | TopicDescription | SubscriptionDescription


class View(NamedTuple):
    """An entity as it is shown. `base` is the address of the namespace."""

    entity: Description
    base: str
    max_message_bytes: int


class Setting(NamedTuple):
    """`read` raises `ValueError` with what is allowed; `write` gives None for no element."""

    element: str
    name: str
    read: Callable[[str], object]
    write: Callable[[View, Any], str | None]


class Shown(NamedTuple):
    """`write` gives XML."""

    element: str
    write: Callable[[View], str]


Table = tuple[Setting | Shown, ...]


def read_settings(table: Table, description: Element) -> dict[str, Any]:
    """The settings that the description names, by the names that the broker has for them."""
    _refuse_missing_features(description)
    found: dict[str, Any] = {}
    for row in table:
        element = description.find(f"{{{SERVICE_BUS}}}{row.element}")
        if isinstance(row, Setting) and element is not None:
            found[row.name] = _read(row, element.text or "")
    return found


def write_description(table: Table, view: View) -> str:
    return "".join(_write(row, view) for row in table)


def _read(row: Setting, text: str) -> object:
    try:
        return row.read(text.strip())
    except ValueError as error:
        raise Refusal(400, f"{row.element} is not {error}") from error


def _write(row: Setting | Shown, view: View) -> str:
    if isinstance(row, Shown):
        return f"<{row.element}>{row.write(view)}</{row.element}>"
    text = row.write(view, getattr(view.entity.settings, row.name))
    return "" if text is None else f"<{row.element}>{escaped(text)}</{row.element}>"


_MISSING_FEATURES = ("EnablePartitioning", "EnableExpress", "IsAnonymousAccessible")


def _refuse_missing_features(description: Element) -> None:
    for name in _MISSING_FEATURES:
        text = description.findtext(f"{{{SERVICE_BUS}}}{name}", "false")
        if text.strip().lower() == "true":
            raise Refusal(400, f"{name} is not there in this emulator: leave it out")
    rules = description.find(f"{{{SERVICE_BUS}}}AuthorizationRules")
    if rules is not None and len(rules):
        raise Refusal(400, "AuthorizationRules of an entity are not there in this emulator")


def _duration(element: str, name: str) -> Setting:
    return Setting(element, name, read_duration, lambda _, value: write_duration(value))


def _limited(element: str, name: str) -> Setting:
    """A duration that must end."""
    return Setting(element, name, _read_limited, lambda _, value: write_duration(value))


def _read_limited(text: str) -> int:
    value = read_duration(text)
    if value is None:
        raise ValueError("a duration that ends")
    return value


def _boolean(element: str, name: str) -> Setting:
    return Setting(element, name, read_boolean, lambda _, value: write_boolean(value))


def _number(element: str, name: str) -> Setting:
    return Setting(element, name, read_number, lambda _, value: str(value))


def _multiple(element: str, name: str, unit: int) -> Setting:
    def read(text: str) -> int:
        return read_number(text) * unit

    return Setting(element, name, read, lambda _, value: str(value // unit))


def _text(element: str, name: str) -> Setting:
    return Setting(element, name, lambda text: text or None, lambda _, value: value)


def _entity(element: str, name: str) -> Setting:
    """Clients write the whole address of another entity."""

    def write(view: View, value: str | None) -> str | None:
        return None if value is None else f"{view.base}/{value}"

    return Setting(element, name, _read_entity, write)


def _read_entity(text: str) -> str | None:
    path = unquote(urlsplit(text).path) if "://" in text else text
    return path.strip("/") or None


def _read_state(text: str) -> str:
    for state in _STATES:
        if state.lower() == text.lower():
            return state
    raise ValueError(f"one of {', '.join(_STATES)}")


def _counts(view: View) -> str:
    counts = view.entity.counts
    values: Mapping[str, int] = {
        "ActiveMessageCount": counts.active,
        "DeadLetterMessageCount": counts.dead,
        "ScheduledMessageCount": counts.scheduled,
        "TransferMessageCount": counts.transfer,
        "TransferDeadLetterMessageCount": 0,
    }
    return "".join(
        f'<d2p1:{name} xmlns:d2p1="{_COUNTS}">{value}</d2p1:{name}>'
        for name, value in values.items()
    )


def _total(view: View) -> str:
    counts = view.entity.counts
    return str(counts.active + counts.dead + counts.scheduled + counts.deferred)


def _subscriptions(view: View) -> str:
    assert isinstance(view.entity, TopicDescription)
    return str(view.entity.subscription_count)


def _always(element: str, text: str) -> Shown:
    return Shown(element, lambda _: text)


_LOCK = _limited("LockDuration", "lock_duration")
_SESSION = _boolean("RequiresSession", "requires_session")
_DUPLICATES = _boolean("RequiresDuplicateDetection", "requires_duplicate_detection")
_WINDOW = _limited("DuplicateDetectionHistoryTimeWindow", "duplicate_window")
_TTL = _duration("DefaultMessageTimeToLive", "default_ttl")
_DEAD_ON_EXPIRY = _boolean("DeadLetteringOnMessageExpiration", "dead_letter_on_expiry")
_DEAD_ON_FILTER = _boolean(
    "DeadLetteringOnFilterEvaluationExceptions", "dead_letter_on_filter_error"
)
_MAX_DELIVERIES = _number("MaxDeliveryCount", "max_delivery_count")
_MAX_SIZE = _multiple("MaxSizeInMegabytes", "max_size_bytes", 1024 * 1024)
_STATUS = Setting("Status", "status", _read_state, lambda _, value: str(value))
_IDLE = _duration("AutoDeleteOnIdle", "auto_delete_on_idle")
_METADATA = _text("UserMetadata", "user_metadata")
_FORWARD = _entity("ForwardTo", "forward_to")
_FORWARD_DEAD = _entity("ForwardDeadLetteredMessagesTo", "forward_dead_letters_to")
_MAX_MESSAGE = Setting(
    "MaxMessageSizeInKilobytes",
    "max_message_bytes",
    lambda text: read_number(text) * 1024,
    lambda view, value: str((value or view.max_message_bytes) // 1024),
)
_TIMES: Table = (
    Shown("CreatedAt", lambda view: write_time(view.entity.created_at)),
    Shown("UpdatedAt", lambda view: write_time(view.entity.updated_at)),
    Shown("AccessedAt", lambda view: write_time(view.entity.accessed_at)),
)
_BATCHED = _always("EnableBatchedOperations", "true")
_SIZE = Shown("SizeInBytes", lambda view: str(view.entity.counts.size_bytes))
_TOTAL = Shown("MessageCount", _total)
_DETAILS = Shown("CountDetails", _counts)
_ANONYMOUS = _always("IsAnonymousAccessible", "false")
_RULES = _always("AuthorizationRules", "")
_ORDERING = _always("SupportOrdering", "true")
_PARTITIONED = _always("EnablePartitioning", "false")
_AVAILABLE = _always("EntityAvailabilityStatus", "Available")
_EXPRESS = _always("EnableExpress", "false")

QUEUE: Table = (
    *(_LOCK, _MAX_SIZE, _DUPLICATES, _SESSION, _TTL, _DEAD_ON_EXPIRY, _WINDOW, _MAX_DELIVERIES),
    *(_BATCHED, _SIZE, _TOTAL, _ANONYMOUS, _RULES, _STATUS, _FORWARD, _METADATA, *_TIMES),
    *(_ORDERING, _DETAILS, _IDLE, _PARTITIONED, _AVAILABLE, _FORWARD_DEAD, _EXPRESS, _MAX_MESSAGE),
)
TOPIC: Table = (
    *(_TTL, _MAX_SIZE, _DUPLICATES, _WINDOW, _BATCHED, _SIZE),
    _always("FilteringMessagesBeforePublishing", "false"),
    *(_ANONYMOUS, _RULES, _STATUS, _METADATA, *_TIMES, _ORDERING, _DETAILS),
    Shown("SubscriptionCount", _subscriptions),
    *(_IDLE, _PARTITIONED, _AVAILABLE),
    _always("EnableSubscriptionPartitioning", "false"),
    *(_EXPRESS, _MAX_MESSAGE),
)
SUBSCRIPTION: Table = (
    *(_LOCK, _SESSION, _TTL, _DEAD_ON_EXPIRY, _DEAD_ON_FILTER, _TOTAL, _MAX_DELIVERIES, _BATCHED),
    *(_STATUS, _FORWARD, *_TIMES, _DETAILS, _METADATA, _FORWARD_DEAD, _IDLE, _AVAILABLE),
)
