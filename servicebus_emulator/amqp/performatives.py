"""What two peers say to each other: the composite types of AMQP 1.0, fields in their order.

A field that is absent is None, or False where it is a boolean that AMQP gives that default. Fields
that AMQP makes mandatory have no default, unless an optional one comes before them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

Fields: TypeAlias = Mapping[str, object]

SENDER, RECEIVER = False, True


class Error(NamedTuple):
    condition: str
    description: str | None = None
    info: Fields | None = None


class Received(NamedTuple):
    section_number: int
    section_offset: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """No tuple: an empty one would be false, and equal to `Released`."""


class Rejected(NamedTuple):
    error: Error | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """As `Accepted`, no tuple."""


class Modified(NamedTuple):
    delivery_failed: bool = False
    undeliverable_here: bool = False
    message_annotations: Fields | None = None


class Declared(NamedTuple):
    """The outcome of a transaction's begin. We never send it."""

    txn_id: bytes


class TransactionalState(NamedTuple):
    """A state inside a transaction: read, so that it can be refused by name."""

    txn_id: bytes
    outcome: "State | None" = None


State: TypeAlias = (
    Received | Accepted | Rejected | Released | Modified | Declared | TransactionalState
)


class Source(NamedTuple):
    address: str | None = None
    durable: int | None = None
    expiry_policy: str | None = None
    timeout: int | None = None
    dynamic: bool = False
    dynamic_node_properties: Fields | None = None
    distribution_mode: str | None = None
    filter: Fields | None = None
    default_outcome: State | None = None
    outcomes: Sequence[str] | None = None
    capabilities: Sequence[str] | None = None


class Target(NamedTuple):
    address: str | None = None
    durable: int | None = None
    expiry_policy: str | None = None
    timeout: int | None = None
    dynamic: bool = False
    dynamic_node_properties: Fields | None = None
    capabilities: Sequence[str] | None = None


class Coordinator(NamedTuple):
    """The target of who wants transactions."""

    capabilities: Sequence[str] | None = None


class Open(NamedTuple):
    container_id: str
    hostname: str | None = None
    max_frame_size: int | None = None
    channel_max: int | None = None
    idle_time_out: int | None = None
    outgoing_locales: Sequence[str] | None = None
    incoming_locales: Sequence[str] | None = None
    offered_capabilities: Sequence[str] | None = None
    desired_capabilities: Sequence[str] | None = None
    properties: Fields | None = None


class Begin(NamedTuple):
    remote_channel: int | None = None
    next_outgoing_id: int = 0
    incoming_window: int = 0
    outgoing_window: int = 0
    handle_max: int | None = None
    offered_capabilities: Sequence[str] | None = None
    desired_capabilities: Sequence[str] | None = None
    properties: Fields | None = None


class Attach(NamedTuple):
    name: str
    handle: int
    role: bool
    snd_settle_mode: int | None = None
    rcv_settle_mode: int | None = None
    source: Source | None = None
    target: Target | Coordinator | None = None
    unsettled: Mapping[object, object] | None = None
    incomplete_unsettled: bool = False
    initial_delivery_count: int | None = None
    max_message_size: int | None = None
    offered_capabilities: Sequence[str] | None = None
    desired_capabilities: Sequence[str] | None = None
    properties: Fields | None = None


class Flow(NamedTuple):
    next_incoming_id: int | None = None
    incoming_window: int = 0
    next_outgoing_id: int = 0
    outgoing_window: int = 0
    handle: int | None = None
    delivery_count: int | None = None
    link_credit: int | None = None
    available: int | None = None
    drain: bool = False
    echo: bool = False
    properties: Fields | None = None


class Transfer(NamedTuple):
    handle: int
    delivery_id: int | None = None
    delivery_tag: bytes | None = None
    message_format: int | None = None
    settled: bool | None = None
    more: bool = False
    rcv_settle_mode: int | None = None
    state: State | None = None
    resume: bool = False
    aborted: bool = False
    batchable: bool = False


class Disposition(NamedTuple):
    role: bool
    first: int
    last: int | None = None
    settled: bool = False
    state: State | None = None
    batchable: bool = False


class Detach(NamedTuple):
    handle: int
    closed: bool = False
    error: Error | None = None


class End(NamedTuple):
    error: Error | None = None


class Close(NamedTuple):
    error: Error | None = None


class SaslMechanisms(NamedTuple):
    sasl_server_mechanisms: Sequence[str]


class SaslInit(NamedTuple):
    mechanism: str
    initial_response: bytes | None = None
    hostname: str | None = None


class SaslChallenge(NamedTuple):
    challenge: bytes


class SaslResponse(NamedTuple):
    response: bytes


class SaslOutcome(NamedTuple):
    code: int
    additional_data: bytes | None = None


AmqpPerformative: TypeAlias = (
    Open | Begin | Attach | Flow | Transfer | Disposition | Detach | End | Close
)
SaslPerformative: TypeAlias = SaslMechanisms | SaslInit | SaslChallenge | SaslResponse | SaslOutcome
Performative: TypeAlias = AmqpPerformative | SaslPerformative
Terminus: TypeAlias = Source | Target | Coordinator
