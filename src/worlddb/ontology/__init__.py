"""Edge types as programs: the handler protocol, the registry, and the eleven built-in types."""
