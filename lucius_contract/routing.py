"""From a tenant, a document and a mode to one of the 16 lanes.

The route is resolved once, at submission, stored on the job and copied to every attempt. Nothing
computes it again for an attempt that exists, whatever the configuration says by then.
"""

import hashlib
import zlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from lucius_contract.errors import ContractError, ErrorCode, Problem

LANES = 16
DIRECTIVE_TOPIC_PREFIX = "global-bus-p"
REPLY_TOPIC_PREFIX = "global-bus-replies-p"
REPLY_SUBSCRIPTION = "lucius-invoker"
PARTITION_KEY_LIMIT = 128


class Mode(StrEnum):
    DEFAULT = "DEFAULT"
    BURST = "BURST"


MODE_SPELLINGS: dict[str, Mode] = {
    "DEFAULT": Mode.DEFAULT,
    "SAFE": Mode.DEFAULT,
    "BURST": Mode.BURST,
}


class DecisionSource(StrEnum):
    REQUEST = "REQUEST"
    TENANT_CONFIG = "TENANT_CONFIG"
    GLOBAL_CONFIG = "GLOBAL_CONFIG"


@dataclass(frozen=True, slots=True)
class ModeDecision:
    mode: Mode
    source: DecisionSource
    reason: str


@dataclass(frozen=True, slots=True)
class Route:
    """What is pinned on a job and on each of its attempts."""

    mode: Mode
    routing_key_used: str
    lane: int
    decision_source: DecisionSource
    decision_reason: str


def resolve_mode(
    requested: Mode | None,
    tenant_mode: Mode | None,
    global_mode: Mode,
    allowed_modes: Collection[Mode] | None = None,
) -> ModeDecision:
    """The request's mode, else the tenant's, else the global default, if the tenant may use it.

    `allowed_modes` of None means that the tenant's configuration limits nothing.
    """
    if requested is not None:
        decision = ModeDecision(requested, DecisionSource.REQUEST, "the request names the mode")
    elif tenant_mode is not None:
        decision = ModeDecision(
            tenant_mode, DecisionSource.TENANT_CONFIG, "the tenant's configuration names the mode"
        )
    else:
        decision = ModeDecision(
            global_mode, DecisionSource.GLOBAL_CONFIG, "neither request nor tenant names a mode"
        )
    if allowed_modes is not None and decision.mode not in allowed_modes:
        allowed = ", ".join(sorted(allowed_modes)) or "none"
        raise ContractError(
            ErrorCode.MODE_FORBIDDEN,
            f"mode {decision.mode} is not allowed for this tenant (allowed: {allowed})",
            [Problem("/mode", f"allowed modes: {allowed}")],
        )
    return decision


def normalise(text: str) -> str:
    """Trim Unicode white space, then the full lower-case mapping; no NFC or other folding."""
    return text.strip().lower()


def routing_key(tenant_id: str, mode: Mode, doc_id: str | None = None) -> str:
    if mode is Mode.DEFAULT:
        return normalise(tenant_id)
    if doc_id is None:
        raise ContractError(
            ErrorCode.DOC_ID_REQUIRED,
            "mode BURST spreads a tenant's work by document and needs a doc_id",
            [Problem("/doc_id", "required in mode BURST")],
        )
    return normalise(tenant_id) + normalise(doc_id)


def lane_of(routing_key_used: str) -> int:
    return zlib.crc32(routing_key_used.encode()) % LANES


def route(tenant_id: str, doc_id: str | None, decision: ModeDecision) -> Route:
    key = routing_key(tenant_id, decision.mode, doc_id)
    return Route(decision.mode, key, lane_of(key), decision.source, decision.reason)


def by_lane(counts: Iterable[tuple[str, int]]) -> dict[int, int]:
    """Counts by directive topic, as counts by lane."""
    return {int(topic.removeprefix(DIRECTIVE_TOPIC_PREFIX)): count for topic, count in counts}


def directive_topic(lane: int) -> str:
    return f"{DIRECTIVE_TOPIC_PREFIX}{lane}"


def reply_topic(lane: int) -> str:
    return f"{REPLY_TOPIC_PREFIX}{lane}"


def partition_key(routing_key_used: str) -> str:
    """The routing key, or its SHA-256 when the bus would refuse its length.

    Counted in UTF-16 units, as the bus and its .NET, Java and JavaScript clients count; for
    characters outside the basic plane that is the stricter reading.
    """
    if len(routing_key_used.encode("utf-16-le")) // 2 <= PARTITION_KEY_LIMIT:
        return routing_key_used
    return hashlib.sha256(routing_key_used.encode()).hexdigest()
