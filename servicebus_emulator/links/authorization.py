"""Which tokens the peer has shown, and what they let it do."""

from servicebus_emulator.links.host import Host
from servicebus_emulator.sas import Right, Unauthorized

_MOST_TOKENS = 5000  # of a connection; the oldest goes


class Authorization:
    """Tokens are put on `$cbs`; one that covers an entity must stand when a link to it is made."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tokens: dict[str, str] = {}

    def put(self, resource: str, token: str) -> None:
        """`Unauthorized`: the token is not good for the resource."""
        self._host.keys.check(token, resource, self._host.clock())
        if self._host.keys:
            self._tokens.pop(resource.lower(), None)
            self._tokens[resource.lower()] = token
            if len(self._tokens) > _MOST_TOKENS:
                del self._tokens[next(iter(self._tokens))]

    @property
    def has_token(self) -> bool:
        return bool(self._tokens)

    def check(self, resource: str, right: Right | None = None) -> None:
        """`Unauthorized`: no token that was put covers the resource and has the right."""
        if not self._host.keys:
            return
        for token in self._tokens.values():
            try:
                self._host.keys.check(token, resource, self._host.clock(), right)
            except Unauthorized:
                continue
            return
        what = "" if right is None else f" that gives the right to {right.lower()}"
        raise Unauthorized(f"no token was put for {resource}{what}")
