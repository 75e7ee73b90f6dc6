"""SQLite and PostgreSQL: the engine, statements, columns, tables and migrations."""
