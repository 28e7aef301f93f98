"""The view room."""
