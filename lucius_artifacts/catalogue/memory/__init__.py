"""The catalogue in memory, for tests: everything is gone with the process."""

from lucius_artifacts.catalogue.memory.catalogue import MemoryCatalogue
from lucius_artifacts.catalogue.memory.rows import Rows

__all__ = ["MemoryCatalogue", "Rows"]
