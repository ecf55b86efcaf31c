"""Tokens with which a service may answer one directive, and publish an artifact as its attempt.

A token is `1.<expiry>.<binding>.<signature>`: when it ends, in seconds since 1970; a hash of the
attempt that it is for; and an HMAC of what stands before it and of its purpose, so that a token for
one purpose is worth nothing for the other. Nothing in a token is looked at before its signature is
known to be ours. It outlives the lease on purpose: whether a lease still holds is the ledger's to
say, with a verdict that a service understands.
"""

import hashlib
import hmac
import math
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from lucius_contract.errors import ContractError, ErrorCode, Problem
from lucius_orchestrator.security import private_files
from lucius_orchestrator.security.bearer import unauthenticated

KEY_BYTES = 32
_VERSION = b"1"
_CALLBACK = b"lucius callback\n"  # a key that also signs something else cannot be talked into this
_PRODUCER = b"lucius producer\n"


class CallbackTokens:
    """The first key signs; tokens of the others pass too, so that keys can be changed."""

    __slots__ = ("_clock", "_keys")

    def __init__(self, keys: Sequence[bytes], clock: Callable[[], datetime]) -> None:
        if not keys or any(len(key) < KEY_BYTES for key in keys):
            raise ValueError(
                f"callback tokens need a key, and keys have at least {KEY_BYTES} bytes"
            )
        self._keys = tuple(keys)
        self._clock = clock

    def issue(
        self, job_id: str, step_id: str, attempt_no: int, lease_id: str, expires_at: datetime
    ) -> str:
        return self._issue(_CALLBACK, _binding(job_id, step_id, attempt_no, lease_id), expires_at)

    def check(
        self, token: str | None, job_id: str, step_id: str, attempt_no: int, lease_id: str
    ) -> None:
        """Raise unless the token is ours, has not ended, and is for exactly this lease."""
        if not token:
            raise unauthenticated("send the directive's callback token as bearer")
        found = self._genuine(_CALLBACK, token)
        if found is None:
            raise unauthenticated("the callback token is not valid")
        if self._has_ended(found):
            raise unauthenticated("the callback token has expired")
        if not hmac.compare_digest(found.binding, _binding(job_id, step_id, attempt_no, lease_id)):
            raise ContractError(
                ErrorCode.FORBIDDEN, "the callback token is for another job, step or attempt"
            )

    def issue_producer(
        self, tenant_id: str, job_id: str, step_id: str, attempt_no: int, expires_at: datetime
    ) -> str:
        """The `artifact_token` of a directive."""
        return self._issue(_PRODUCER, _binding(job_id, step_id, attempt_no, tenant_id), expires_at)

    def check_producer(
        self, token: str, tenant_id: str, job_id: str, step_id: str, attempt_no: int
    ) -> None:
        """Raise FORBIDDEN, in the same words whatever is wrong, unless the token is ours, has not
        ended, and is for exactly this attempt of a job of this tenant."""
        wanted = _binding(job_id, step_id, attempt_no, tenant_id)
        found = self._genuine(_PRODUCER, token)
        if found is None or self._has_ended(found) or found.binding != wanted:
            problem = Problem("/producer/token", "must be the artifact_token of its directive")
            raise ContractError(ErrorCode.FORBIDDEN, "the producer is not proven", [problem])

    def _issue(self, purpose: bytes, binding: bytes, expires_at: datetime) -> str:
        expiry = b"%d" % math.ceil(expires_at.timestamp())
        signed = b".".join((_VERSION, expiry, binding))
        return (signed + b"." + _signature(self._keys[0], purpose + signed)).decode()

    def _genuine(self, purpose: bytes, token: str) -> "_Signed | None":
        """What was signed, if it was signed by us and for this."""
        signed, _, signature = token.encode(errors="surrogatepass").rpartition(b".")
        for key in self._keys:
            if hmac.compare_digest(_signature(key, purpose + signed), signature):
                _, expiry, binding = signed.split(b".")
                return _Signed(int(expiry), binding)
        return None

    def _has_ended(self, token: "_Signed") -> bool:
        return self._clock().timestamp() >= token.expiry


class _Signed(NamedTuple):
    expiry: int
    binding: bytes


def load_or_create_key(path: Path, use: str = "callback tokens") -> bytes:
    """The key kept in a file; made by the first who asks, the same for all who ask later. `use` is
    what it is for.

    A damaged file is UNAVAILABLE: to make another key would disown every token that is out.
    """
    try:
        key = _stored(path) or _created(path)
    except OSError as error:
        raise _unavailable(path, use) from error
    if len(key) != KEY_BYTES:
        raise _unavailable(path, use)
    return key


def _stored(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def _created(path: Path) -> bytes:
    with private_files.locked(path) as target:
        if not target.exists():
            private_files.replace(target, secrets.token_bytes(KEY_BYTES))
        return target.read_bytes()


def _unavailable(path: Path, use: str) -> ContractError:
    return ContractError(ErrorCode.UNAVAILABLE, f"{path} holds no key for {use}")


def _binding(job_id: str, step_id: str, attempt_no: int, whose: str) -> bytes:
    """Lengths keep apart what would be the same text when put together. `whose` is the lease or the
    tenant."""
    text = f"{len(job_id)},{len(step_id)},{len(whose)},{attempt_no}:{job_id}{step_id}{whose}"
    return _text(hashlib.sha256(text.encode(errors="surrogatepass")).digest())


def _signature(key: bytes, signed: bytes) -> bytes:
    return _text(hmac.digest(key, signed, "sha256"))


def _text(digest: bytes) -> bytes:
    return urlsafe_b64encode(digest).rstrip(b"=")
