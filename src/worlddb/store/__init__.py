"""Where worlds are kept: the protocol, and SQLite."""
