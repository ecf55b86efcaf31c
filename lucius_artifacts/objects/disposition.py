"""How a file is offered for saving."""

import re
from urllib.parse import quote

_PLAIN = re.compile(r"[^A-Za-z0-9 ._()+,=@-]")


def attachment(file_name: str) -> str:
    """The value of Content-Disposition: the name itself, and one in ASCII for clients that cannot
    read it. Nothing in a name ends the header or leads out of a folder."""
    plain = _PLAIN.sub("_", file_name)
    exact = quote(file_name, safe="", errors="replace")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}"
