"""What one connection, and all of them together, may take of the emulator."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The defaults leave the clients of Azure alone: they open and show a token within a second,
    and send a heartbeat at half of the idle time-out that they are told, at the latest 30 s after
    it is due.

    `handshake_ms`: until a peer has opened, with keys also until it has shown a token. `idle_ms`:
    how long an open connection may be silent; the peer is told half of it. `request_ms`: for an
    HTTP request to arrive, or for a part of its answer to be read. `keep_alive_ms`: between two
    requests. `closing_ms`: for the last words to be read. `unread_bytes`: above this nothing more
    is made for a peer that does not read.
    """

    connections: int = 1000
    links: int = 2000
    handshake_ms: int = 30_000
    idle_ms: int = 240_000
    request_ms: int = 30_000
    keep_alive_ms: int = 75_000
    closing_ms: int = 5_000
    unread_bytes: int = 256 * 1024
