"""Identifiers. Time and randomness are parameters, so that the same inputs give the same id."""

from datetime import datetime

LEASE_BYTES = 16
JOB_RANDOM_BYTES = 10
_VERSION_7 = 0x7
_VARIANT = 0b10


def new_job_id(now: datetime, entropy: bytes) -> str:
    """`job_` and a UUIDv7 in hex: ids of later milliseconds sort after earlier ones."""
    _require(entropy, JOB_RANDOM_BYTES)
    milliseconds = int(now.timestamp() * 1000)
    random_a = int.from_bytes(entropy[:2]) & 0xFFF
    random_b = int.from_bytes(entropy[2:]) & (2**62 - 1)
    value = milliseconds << 80 | _VERSION_7 << 76 | random_a << 64 | _VARIANT << 62 | random_b
    return f"job_{value:032x}"


def new_lease_id(entropy: bytes) -> str:
    """128 random bits in hex: who does not hold the directive cannot guess it."""
    _require(entropy, LEASE_BYTES)
    return entropy.hex()


def step_id(step_index: int) -> str:
    return f"step_{step_index + 1:02d}"


def message_id(job_id: str, step_id: str, attempt_no: int, lease_id: str, message_type: str) -> str:
    """Names one message; with the ids made here it stays within the bus's 128 characters."""
    return f"{job_id}.{step_id}.{attempt_no}.{lease_id}.{message_type}"


def _require(entropy: bytes, size: int) -> None:
    if len(entropy) != size:
        raise ValueError(f"needs {size} random bytes, got {len(entropy)}")
