"""What the catalogues on SQLite and PostgreSQL share: rows, statements, and the verbs."""
