"""The contract that all parts of LUCIUS share: the leaf of the import tree.

Nothing here does I/O, reads a clock or draws a random number. A team in another language has the
same contract as data: `schemas/` (JSON Schema and AsyncAPI) and `vectors/` (golden examples).
"""

CONTRACT_VERSION = "1"
"""Major version of every message and envelope; `schema_version` is this, or this and a minor."""
