"""Management of the emulator over HTTP: Atom entries as the administration clients of Service Bus
speak them, and `/$emulator/...` for what only an emulator has."""

from servicebus_emulator.administration.application import Administration
from servicebus_emulator.administration.exchange import Request, Response
from servicebus_emulator.administration.protocol import AdministrationProtocol, Full
from servicebus_emulator.administration.web_pages import is_of_web_page

__all__ = [
    "Administration",
    "AdministrationProtocol",
    "Full",
    "Request",
    "Response",
    "is_of_web_page",
]
