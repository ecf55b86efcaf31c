"""Catalogues: in memory, in a SQLite file, on PostgreSQL."""
