"""The catalogue in a SQLite file: the embedded default."""

from lucius_artifacts.catalogue.sqlite.catalogue import SqliteCatalogue

__all__ = ["SqliteCatalogue"]
