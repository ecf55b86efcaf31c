"""What an attacker tries on a live plane, by subject."""

from tests.security.attacks.live.attempts import artifacts, callers, refs, requests, sockets
from tests.security.attacks.live.attempts.attempt import Attempt

_SUBJECTS = (
    *(callers.credentials, callers.tenants, callers.roles, refs.refs, refs.addresses),
    *(requests.envelopes, requests.callbacks, requests.queries),
    *(artifacts.foreign_artifacts, artifacts.forged_artifacts, artifacts.signed_addresses),
    *(sockets.http, sockets.bus),
)
ATTEMPTS = [attempt for subject in _SUBJECTS for attempt in subject()]

__all__ = ["ATTEMPTS", "Attempt"]
