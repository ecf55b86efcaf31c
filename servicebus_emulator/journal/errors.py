"""What can go wrong with a data folder, grouped by what its owner should do.

JournalError
├── FolderInUse        another process has it: stop that one, or take another folder
├── JournalDamaged     it cannot be read: move the folder away to start empty
└── JournalUnwritable  the disk refuses: make room or give rights, nothing that was kept is lost
"""

from pathlib import Path


class JournalError(Exception):
    """Base of all errors of the journal."""


class FolderInUse(JournalError):
    def __init__(self, folder: Path, holder: str) -> None:
        super().__init__(
            f"the data folder {folder} is in use by process {holder or 'unknown'}:"
            " stop that process, or start with another folder"
        )


class JournalDamaged(JournalError):
    def __init__(self, file: Path, offset: int, reason: str) -> None:
        super().__init__(
            f"{file} is damaged at byte {offset}: {reason};"
            f" move {file.parent} away to start empty, or put a copy in its place"
        )
        self.file = file
        self.offset = offset


class JournalUnwritable(JournalError):
    def __init__(self, file: Path, error: OSError) -> None:
        super().__init__(f"{file} cannot be written ({error.strerror}); what is in it is kept")
