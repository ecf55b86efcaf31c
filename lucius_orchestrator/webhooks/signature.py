"""How a receiver knows that a webhook is ours, new, and of its own tenant.

    Lucius-Signature: t=1769508120,v1=5257a869…

`t` is when it was sent, in seconds since 1970; `v1` is HMAC-SHA256, in hex, of `t`, a dot and the
bytes of the body. While keys are rotated there is a `v1` for each key, so that receivers can change
theirs at any moment in between.

Each tenant has keys of its own, derived from a master key that no receiver has: who can check the
webhooks of one tenant can neither sign nor learn anything of another's.
"""

import hashlib
import hmac
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

HEADER = "Lucius-Signature"
TOLERANCE = timedelta(minutes=5)


class WebhookKeys:
    """The keys that sign what a tenant is told; the first is the one to stay. With each of the
    `masters`, which are one or, while they are rotated, two, there is one for each of the tenant's
    `generations`. `shared` keys sign for all tenants: for receivers from before there were others.
    """

    def __init__(
        self,
        masters: Sequence[bytes],
        generations: Callable[[str], Sequence[int]],
        shared: Sequence[bytes] = (),
    ) -> None:
        if not (masters or shared) or not all((*masters, *shared)):
            raise ValueError("webhooks need a key to be signed with")
        self._masters = tuple(masters)
        self._generations = generations
        self._shared = tuple(shared)

    def __call__(self, tenant_id: str) -> tuple[bytes, ...]:
        generations = self._generations(tenant_id)
        own = [tenant_key(m, tenant_id, number) for m in self._masters for number in generations]
        return (*own, *self._shared)


def tenant_key(master: bytes, tenant_id: str, generation: int = 1) -> bytes:
    """Derive a tenant's key: 64 hexadecimal digits, as bytes. Of generations of one tenant, as of
    tenants, one key says nothing about another."""
    about = f"lucius webhook key {generation}\n{tenant_id}"
    return hmac.new(master, about.encode(), hashlib.sha256).hexdigest().encode()


class InvalidSignature(Exception):
    """The body is not one that a holder of the key has sent just now: do not act on it."""


def signature_header(body: bytes, at: datetime, keys: Sequence[bytes]) -> str:
    """The value of the header for a body that is sent at a moment; the first key's comes first."""
    seconds = str(int(at.timestamp()))
    return ",".join([f"t={seconds}", *(f"v1={_signed(seconds, body, key)}" for key in keys)])


def verify(
    header: str,
    body: bytes,
    keys: Sequence[bytes],
    now: datetime,
    tolerance: timedelta = TOLERANCE,
) -> None:
    """For receivers. `body` is what came, byte for byte; `keys` are those that count, usually one.

    A header that is older or newer than `tolerance` is refused, so that whoever has overheard one
    cannot use it for long. Within it, receivers drop an event id that they have seen.
    """
    members = [member.strip().partition("=") for member in header.split(",")]
    times = [value for name, _, value in members if name == "t"]
    if len(times) != 1 or not (times[0].isascii() and times[0].isdigit()):
        raise InvalidSignature("the header has no time")
    given = [value.encode() for name, _, value in members if name == "v1"]
    expected = [_signed(times[0], body, key).encode() for key in keys]
    if not any(hmac.compare_digest(one, other) for one in expected for other in given):
        raise InvalidSignature("no signature is of this body and a key that counts")
    if abs(now - _moment(times[0])) > tolerance:
        raise InvalidSignature("it was sent too long ago, or a clock is wrong")


def _signed(seconds: str, body: bytes, key: bytes) -> str:
    return hmac.new(key, seconds.encode() + b"." + body, hashlib.sha256).hexdigest()


def _moment(seconds: str) -> datetime:
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise InvalidSignature("the header has no time") from error
