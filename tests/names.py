"""Names of what tests make on servers that they share."""

import itertools
import os

_numbers = itertools.count(1)


def unique(prefix: str) -> str:
    """Return letters and digits that nothing else in this run is called: also a name for a table of
    Azure, a container, a schema of PostgreSQL."""
    return f"{prefix}p{os.getpid()}x{next(_numbers)}"
