"""The store in PostgreSQL, on a server that the tests start themselves."""
