"""How entities behave: the defaults are those of Azure. Times are milliseconds."""

from dataclasses import dataclass

LOCK_DURATION = 60_000
DUPLICATE_WINDOW = 600_000
MAX_SIZE_BYTES = 1024 * 1024 * 1024

ACTIVE = "Active"
DISABLED = "Disabled"
SEND_DISABLED = "SendDisabled"
RECEIVE_DISABLED = "ReceiveDisabled"
STATUSES = (ACTIVE, DISABLED, SEND_DISABLED, RECEIVE_DISABLED)


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """`default_ttl` is also the longest time to live. `max_message_bytes` None: what the broker
    takes. `auto_delete_on_idle` and `user_metadata` are kept and shown, nothing more."""

    lock_duration: int = LOCK_DURATION
    max_delivery_count: int = 10
    default_ttl: int | None = None
    dead_letter_on_expiry: bool = False
    requires_session: bool = False
    requires_duplicate_detection: bool = False
    duplicate_window: int = DUPLICATE_WINDOW
    max_size_bytes: int = MAX_SIZE_BYTES
    max_message_bytes: int | None = None
    status: str = ACTIVE
    forward_to: str | None = None
    forward_dead_letters_to: str | None = None
    auto_delete_on_idle: int | None = None
    user_metadata: str | None = None


@dataclass(frozen=True, slots=True)
class TopicSettings:
    default_ttl: int | None = None
    requires_duplicate_detection: bool = False
    duplicate_window: int = DUPLICATE_WINDOW
    max_size_bytes: int = MAX_SIZE_BYTES
    max_message_bytes: int | None = None
    status: str = ACTIVE
    auto_delete_on_idle: int | None = None
    user_metadata: str | None = None


@dataclass(frozen=True, slots=True)
class SubscriptionSettings:
    """`dead_letter_on_filter_error`: a message whose filter fails is kept among the dead letters,
    where else it is passed over."""

    lock_duration: int = LOCK_DURATION
    max_delivery_count: int = 10
    default_ttl: int | None = None
    dead_letter_on_expiry: bool = False
    dead_letter_on_filter_error: bool = True
    requires_session: bool = False
    status: str = ACTIVE
    forward_to: str | None = None
    forward_dead_letters_to: str | None = None
    auto_delete_on_idle: int | None = None
    user_metadata: str | None = None


Settings = QueueSettings | TopicSettings | SubscriptionSettings
ReadableSettings = QueueSettings | SubscriptionSettings
