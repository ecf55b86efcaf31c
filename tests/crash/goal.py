"""How many jobs there shall be: a number that the test raises, and that every process reads."""

from pathlib import Path
from typing import NamedTuple


class Goal(NamedTuple):
    path: str

    def raise_to(self, jobs: int) -> None:
        """Write it whole or not at all, since it is read meanwhile."""
        new = Path(f"{self.path}.new")
        new.write_text(str(jobs))
        new.rename(self.path)

    def jobs(self) -> int:
        """Return 0 before it was first raised."""
        path = Path(self.path)
        return int(path.read_text()) if path.exists() else 0
