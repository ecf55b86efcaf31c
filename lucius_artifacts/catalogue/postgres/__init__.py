"""The catalogue on PostgreSQL, with psycopg. Needs the extra `postgres`."""

from lucius_artifacts.catalogue.postgres.catalogue import PostgresCatalogue

__all__ = ["PostgresCatalogue"]
