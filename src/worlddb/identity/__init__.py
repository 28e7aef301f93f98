"""Identity: finds the node of the store that a name refers to."""
