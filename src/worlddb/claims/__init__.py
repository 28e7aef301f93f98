"""The claims room."""
