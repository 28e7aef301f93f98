"""Tables: the rows of a store in SQL that both SQLite and PostgreSQL run."""
