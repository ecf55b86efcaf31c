"""Which tokens the peer has shown, and what they let it do."""

from servicebus_emulator.links.host import Host
from servicebus_emulator.sas import Unauthorized


class Authorization:
    """Tokens are put on `$cbs`; one that covers an entity must stand when a link to it is made."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._tokens: dict[str, str] = {}

    def put(self, resource: str, token: str) -> None:
        """`Unauthorized`: the token is not good for the resource."""
        self._host.keys.check(token, resource, self._host.clock())
        self._tokens[resource.lower()] = token

    def check(self, resource: str) -> None:
        """`Unauthorized`: no token that was put covers the resource."""
        if not self._host.keys:
            return
        for token in self._tokens.values():
            try:
                self._host.keys.check(token, resource, self._host.clock())
            except Unauthorized:
                continue
            return
        raise Unauthorized(f"no token was put for {resource}")
