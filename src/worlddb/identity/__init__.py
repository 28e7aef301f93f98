"""Identity: which node of the store a name means."""
