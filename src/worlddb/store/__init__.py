"""Store: the interface of a database for worlds, with SQLite and PostgreSQL behind it."""
