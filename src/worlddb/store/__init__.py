"""Store: where worlds are kept. The interface, and its two databases: SQLite and PostgreSQL."""
