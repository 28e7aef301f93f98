"""The recall room."""
