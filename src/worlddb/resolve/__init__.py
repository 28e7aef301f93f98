"""Resolve: is this the one we know? Pure functions on names, attributes and vectors."""
