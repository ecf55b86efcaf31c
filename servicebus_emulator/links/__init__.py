"""One peer's side of the emulator: its connection, sessions and links. No sockets: bytes come in,
bytes go out, and what must wait is asked of the host."""

from servicebus_emulator.links.connection import Connection
from servicebus_emulator.links.host import Host, Timer

__all__ = ["Connection", "Host", "Timer"]
