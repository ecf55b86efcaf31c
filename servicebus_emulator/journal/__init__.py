"""What a data folder keeps: the durable changes of a broker, in the order in which they happened.

A journal is one file of groups. A group is what one flush wrote: a head with lengths and checksums,
the records as JSON, and the bytes of messages and session states as they are. A process that dies
while it writes leaves the beginning of a group at the end of the file, which the next one cuts off;
anything else that does not fit its checksum is damage, and damage is never repaired by guessing.
"""

from servicebus_emulator.journal.errors import (
    FolderInUse,
    JournalDamaged,
    JournalError,
    JournalUnwritable,
)
from servicebus_emulator.journal.journal import Journal

__all__ = ["FolderInUse", "Journal", "JournalDamaged", "JournalError", "JournalUnwritable"]
