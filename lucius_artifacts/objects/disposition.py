"""How a file is offered for saving."""

import re
from urllib.parse import quote

_PLAIN = re.compile(r"[^A-Za-z0-9 ._()+,=@-]")
_TURNS_TEXT_AROUND = re.compile(r"[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""With these `invoice-\u202efdp.exe` is shown as a PDF."""


def attachment(file_name: str) -> str:
    """The value of Content-Disposition: the name itself, and one in ASCII for clients that cannot
    read it. Nothing in a name ends the header, leads out of a folder, or shows it as another."""
    plain = _PLAIN.sub("_", file_name)
    exact = quote(_TURNS_TEXT_AROUND.sub("_", file_name), safe="", errors="replace")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}"
