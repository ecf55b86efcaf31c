"""Names of tables, as people write them and as Azure allows them.

Azure allows letters and digits, 3 to 63 of them, a letter first, and takes upper and lower case for
the same. A name is made legal by leaving out every other character, in lower case: `lucius_ledger`
is the table `luciusledger`, `job-idempotency` is `jobidempotency`.
"""

import re

_LEGAL = re.compile(r"[a-z][a-z0-9]{2,62}")
_RESERVED = "tables"


def physical_name(name: str) -> str:
    physical = re.sub(r"[^a-z0-9]", "", name.lower())
    if not _LEGAL.fullmatch(physical) or physical == _RESERVED:
        raise ValueError(
            f"{name!r} gives no name of a table: 3 to 63 letters and digits, a letter first, other"
            " than 'tables'"
        )
    return physical
